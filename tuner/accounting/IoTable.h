#pragma once

#include "runtime/plan/Io.h"
#include "tuner/workload/Workload.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

/// DeFT's table of bytes moved over whole decoding runs, counted from the plans of every step.
namespace deft::accounting {

/// The table's unit: an attention of 32 heads without grouping, head dim 128, 2 bytes, in 32 layers.
const plan::VariantFacts &unit();
inline constexpr int kLayers = 32;

/// Bytes of all layers, summed over the steps of one run, or of several.
struct RunIo {
  plan::IoBytes shared; ///< partition `flatten`: every token is read once
  plan::IoBytes query;  ///< partition `query`: every query reads its path
  long long steps = 0;
};

/// Told after each step: done, of how many. May be empty.
using Progress = std::function<void(long long, long long)>;

/// Plans every step from where the workload stands to its end. Row tiles hold all queries of a step, as the
/// paper's count has it: a group is read once, however many queries it has.
support::Result<RunIo> countRun(workload::Workload &workload, const Progress &progress = {});

struct IoRow {
  std::string name;
  int branches = 0; ///< of few-shot; else 0
  int runs = 1;
  RunIo io;                                   ///< of the rule: what stands in the paper
  double leastSharedTb = 0, mostSharedTb = 0; ///< of single runs
  double paperSharedTb = 0, paperQueryTb = 0;

  double sharedTb() const { return static_cast<double>(io.shared.cache) / 1e12; }
  double queryTb() const { return static_cast<double>(io.query.cache) / 1e12; }
};

/// Rows that are put together by one rule.
struct IoGroup {
  std::string key;  ///< of JSON: "few_shot", "reasoning", "speculative"
  std::string rule; ///< what a row's numbers are, in one sentence
  std::vector<IoRow> rows;
  std::vector<std::string> leftOut; ///< names of rows whose record was not found
};

/// The whole table. Without a folder the recorded rows are left out, and said to be.
support::Result<std::vector<IoGroup>> countTable(const std::string &recordsFolder,
                                                 const Progress &progress = {});

/// Where a group's rows differ from the paper by more than a percent, a sentence on each way in which they
/// do; empty where none does.
std::string explainDifferences(const IoGroup &group);

} // namespace deft::accounting
