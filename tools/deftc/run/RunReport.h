#pragma once

#include "compiler/config/Config.h"
#include "compiler/spec/Variant.h"
#include "runtime/plan/Planner.h"
#include "runtime/reference/Check.h"
#include "runtime/tree/TreeSummary.h"
#include "tools/deftc/run/RunBackend.h"
#include "tools/deftc/run/RunSelection.h"

#include <nlohmann/json_fwd.hpp>

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace deft::cli {

/// Everything that one `deftc run` found out.
struct RunReport {
  spec::Variant variant;
  std::string treePath;
  tree::TreeSummary tree;
  plan::VisibleCounts visible;
  std::int64_t readTokens = 0; ///< that some item reads: those that are seen, in whole tiles
  config::Config config;
  config_cache::Ruling ruling;                       ///< why this config
  bool isAsked = false;                              ///< --partition or --chunk changed it
  spec::Partition partition = spec::Partition::Auto; ///< of the plan: what `auto` chose
  plan::PlanSummary plan;
  int blocks = 0;                        ///< that the backend runs at a time
  config::CostCoefficients kernelPrices; ///< of the backend
  std::string backend;                   ///< "cuda" or "cpu"
  std::string device;                    ///< its name, or "2 threads"
  std::string pages;                     ///< "in-order" or "scattered"
  std::uint64_t seed = 0;
  std::string inputs; ///< the folder that they came from; empty: random ones of the seed

  struct Step {
    double planUs = 0;       ///< host time
    bool isAdvanced = false; ///< by advance(), not made anew
    double runUs = 0;        ///< median
  };
  std::vector<Step> steps; ///< at least one; other fields are of the last
  RunTimes times;
  double readBandwidth = 0;      ///< bytes per second of a plain read of the same tokens; 0: not measured
  std::optional<double> floorUs; ///< where the device's ceilings are known
  std::string ceilingModel;
  /// The products take longer than reading the tokens once does: by the device's ceilings, on a CPU by the
  /// plain read and the prices that plans are made by.
  bool isBoundByProducts = false;

  std::optional<reference::CheckReport> check;  ///< of the step that is furthest off
  long long queriesChecked = 0, queriesRun = 0; ///< of all steps
  std::optional<SelectionRun> selected;         ///< of the last step, or the first that was wrong

  double cacheBytes() const; ///< K and V of the tokens that the mask shows some query
  double readBytes() const;  ///< K and V of the tokens that the plan reads, each once
  double planBytes() const;  ///< of the cache as often as the plan reads it, queries, partials and outputs
  /// Of the time, what a plain read of these tokens would take. A run that is faster than the read beside it
  /// shows what the machine can do, so never more than 1.
  double readShare() const;
  double flops() const; ///< of both products, over the pairs that tree and mask show
};

void printReport(const RunReport &report, std::ostream &out);
nlohmann::json toJson(const RunReport &report);

} // namespace deft::cli
