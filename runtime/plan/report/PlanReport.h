#pragma once

#include "compiler/config/Config.h"
#include "compiler/support/Result.h"
#include "runtime/plan/Balance.h"
#include "runtime/plan/CostModel.h"
#include "runtime/plan/Io.h"
#include "runtime/plan/Planner.h"
#include "runtime/tree/KvTree.h"

#include <nlohmann/json_fwd.hpp>

#include <functional>
#include <string>
#include <vector>

namespace deft::plan {

/// A query and a token of its path, as masks see them.
struct MaskSite {
  int query = 0; ///< caller's index
  int qPos = 0, kvPos = 0;
  int depth = 0; ///< of the token's node
};

/// A plan and its report: as text by `deftc plan`, as JSON, and as a picture. Plain values.
struct PlanReport {
  std::string treeName; ///< for people
  tree::KvTree tree;
  std::vector<std::string> nodeNames; ///< as the tree's file has them, or empty
  std::string variantName;
  std::string machineName; ///< for people; may be empty
  VariantFacts facts;
  config::Config config;
  int blocks = 0;

  Plan plan;
  CostModel model; ///< by which the plan's time is told; see reportPlan
  PlanCost cost;
  IoBytes io;
  Balance balance;            ///< in microseconds of the cost model
  std::vector<int> nodeOfRun; ///< of each run of the plan
  /// Whether the mask shows a query a token of its path, for pictures; empty: all that facts.reach says.
  std::function<bool(const MaskSite &)> shows;

  std::string nodeName(int node) const;
  bool isOfGpu() const { return config.phases.front().family != config::Family::Cpu; }
  /// Of the phase that the item is in.
  std::string phaseName(int item) const;
  /// The caller's query at a place of the plan's order.
  const tree::Query &query(int place) const { return tree.queries()[plan.callerIndex[place]]; }
};

/// Places the tree, plans it, counts the plan and tells its time by `prices`: plans are made by the config's
/// own, and kernels of a GPU compared by others (config::DevicePrices::kernels).
support::Result<PlanReport> reportPlan(tree::KvTree tree, const VariantFacts &facts,
                                       const config::Config &config, const config::CostCoefficients &prices,
                                       int blocks, const PlanOptions &options = {});

/// "4,400 tokens read, each by 10.1 queries on average"; under a mask, how many it hides.
std::string readText(const PlanReport &report);

/// Of what each item has a unit: "8 KV heads", or "2 groups of query heads".
std::string unitsText(const VariantFacts &facts);

nlohmann::json toJson(const PlanReport &report);
/// A picture for a browser; see PlanPicture.cpp.
std::string drawPlan(const PlanReport &report);

} // namespace deft::plan
