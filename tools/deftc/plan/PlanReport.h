#pragma once

#include "compiler/config/Config.h"
#include "compiler/support/Result.h"
#include "runtime/config_cache/Select.h"
#include "runtime/plan/Balance.h"
#include "runtime/plan/CostModel.h"
#include "runtime/plan/Io.h"
#include "runtime/tree/KvTree.h"

#include <nlohmann/json_fwd.hpp>

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace deft::cli {

/// A plan and all that `deftc plan` tells of it. Plain values.
struct PlanReport {
  std::string treeName; ///< for people
  tree::KvTree tree;
  std::vector<std::string> nodeNames; ///< as the tree's file has them, or empty
  std::string variantName;
  plan::VariantFacts facts;
  config::Config config;
  std::optional<config_cache::Selection> selection; ///< why this config; none: for no device in particular
  int blocks = 0;

  plan::Plan plan;
  plan::CostModel model; ///< by which the plan's time is told; see reportPlan
  plan::PlanCost cost;
  plan::IoBytes io;
  plan::Balance balance;      ///< in microseconds of the cost model
  std::vector<int> nodeOfRun; ///< of each run of the plan

  std::string nodeName(int node) const;
  /// The caller's query at a place of the plan's order.
  const tree::Query &query(int place) const { return tree.queries()[plan.callerIndex[place]]; }
};

/// Places the tree, plans it, counts the plan and tells its time by `prices`: plans are made by the config's
/// own, and kernels of a GPU compared by others (kernelCoefficients).
support::Result<PlanReport> reportPlan(tree::KvTree tree, const plan::VariantFacts &facts,
                                       const config::Config &config, const config::CostCoefficients &prices,
                                       int blocks);

/// "4,400 tokens read, each by 10.1 queries in the mean"; under a mask, how many it hides from all.
std::string readText(const PlanReport &report);

void printPlan(const PlanReport &report, std::ostream &out);
nlohmann::json toJson(const PlanReport &report);
/// A picture for a browser; see PlanPicture.cpp.
std::string drawPlan(const PlanReport &report);

} // namespace deft::cli
