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

/// A plan and its report, which `deftc plan` prints as text or JSON, or draws. Plain values.
struct PlanReport {
  std::string treeName; ///< for people
  tree::KvTree tree;
  std::vector<std::string> nodeNames; ///< as in the tree's file, or empty
  std::string variantName;
  std::string machineName; ///< for people; may be empty
  VariantFacts facts;
  config::Config config;
  int blocks = 0;

  Plan plan;
  CostModel model; ///< for the plan's time; see reportPlan
  PlanCost cost;
  IoBytes io;
  Balance balance;            ///< in microseconds of the cost model
  std::vector<int> nodeOfRun; ///< for each run of the plan
  /// Whether the mask shows a query a token of its path, for pictures; empty: as facts.reach says.
  std::function<bool(const MaskSite &)> shows;

  std::string nodeName(int node) const;
  bool isOfGpu() const { return config.phases.front().family != config::Family::Cpu; }
  /// The name of the phase of an item.
  std::string phaseName(int item) const;
  /// The caller's query at a place in plan order.
  const tree::Query &query(int place) const { return tree.queries()[plan.callerIndex[place]]; }
};

/// Places the tree, plans it, counts the plan and estimates its time by `prices`. The config's own prices
/// make plans; other ones compare kernels of a GPU (config::DevicePrices::kernels).
support::Result<PlanReport> reportPlan(tree::KvTree tree, const VariantFacts &facts,
                                       const config::Config &config, const config::CostCoefficients &prices,
                                       int blocks, const PlanOptions &options = {});

/// "4,400 tokens read, each by 10.1 queries on average"; with a mask, also the number of hidden tokens.
std::string readText(const PlanReport &report);

/// The units of an item: "8 KV heads", or "2 groups of query heads".
std::string unitsText(const VariantFacts &facts);

nlohmann::json toJson(const PlanReport &report);
/// A picture for a browser; see PlanPicture.cpp.
std::string drawPlan(const PlanReport &report);

} // namespace deft::plan
