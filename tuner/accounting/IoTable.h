#pragma once

#include "runtime/plan/Io.h"
#include "tuner/workload/Workload.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

/// DeFT's table of bytes moved over whole decoding runs, computed from the plans of every step.
namespace deft::accounting {

/// The table's unit: an attention of 32 heads without grouping, head dim 128, 2 bytes per element, 32 layers.
const plan::VariantFacts &unit();
inline constexpr int kLayers = 32;

/// Bytes of all layers, summed over the steps of one run, or of several.
struct RunIo {
  plan::IoBytes shared; ///< partition `flatten`: every token is read once
  plan::IoBytes query;  ///< partition `query`: every query reads its path
  long long steps = 0;
};

/// Called after each step with the number of finished steps and of all steps. May be empty.
using Progress = std::function<void(long long, long long)>;

/// Plans every step from the workload's current one to its end. Row tiles hold all queries of a step, as in
/// the paper's count: a group is read once, whatever its number of queries.
support::Result<RunIo> countRun(workload::Workload &workload, const Progress &progress = {});

struct IoRow {
  std::string name;
  int branches = 0; ///< for few-shot; otherwise 0
  int runs = 1;
  RunIo io;                                   ///< by the row's rule, as in the paper
  double leastSharedTb = 0, mostSharedTb = 0; ///< of single runs
  double paperSharedTb = 0, paperQueryTb = 0;

  double sharedTb() const { return static_cast<double>(io.shared.cache) / 1e12; }
  double queryTb() const { return static_cast<double>(io.query.cache) / 1e12; }
};

/// Rows that are built by the same rule.
struct IoGroup {
  std::string key;  ///< in JSON: "few_shot", "reasoning", "speculative"
  std::string rule; ///< how the numbers of a row are obtained, in one sentence
  std::vector<IoRow> rows;
  std::vector<std::string> leftOut; ///< names of rows whose record was not found
};

/// Makes the whole table. Without a folder it leaves out the recorded rows and lists their names.
support::Result<std::vector<IoGroup>> countTable(const std::string &recordsFolder,
                                                 const Progress &progress = {});

/// If a group's rows differ from the paper by more than a percent, a sentence for each kind of difference;
/// otherwise empty.
std::string explainDifferences(const IoGroup &group);

} // namespace deft::accounting
