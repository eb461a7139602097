#pragma once

#include "runtime/plan/CostModel.h"
#include "runtime/plan/Plan.h"
#include "runtime/plan/VariantFacts.h"
#include "runtime/tree/ExpandedNodes.h"

#include <span>
#include <vector>

/// Divides a step over a latent cache into two runs: nodes with many readers may be cheaper in expanded form,
/// with K and V of each head. A planner treats the forms as two ranks (tree::Ranks), each with its own cache.
namespace deft::plan {

/// One of the two runs, with the arguments of its prices.
struct FormRun {
  const VariantFacts &facts;
  const config::Config &config;
  config::CostCoefficients prices;
  int blocks = 1;
};

/// The nodes that are cheaper to read expanded, as ascending indices into `nodes`. Empty if they save less
/// than the second run costs.
std::vector<int> cheaperExpanded(const tree::KvTree &tree, std::span<const tree::ExpandedNode> nodes,
                                 const FormRun &absorbed, const FormRun &expanded);

/// The tree for one of the two runs: the expanded run has the chosen nodes, at their locations in its cache,
/// and the absorbed run has all others. The tree must have no ranks.
tree::KvTree treeOfForm(const tree::KvTree &tree, std::span<const tree::ExpandedNode> chosen,
                        bool isExpanded);

/// New tokens of a chosen node have no expanded form, so plans for one form must not grow with it.
void stopGrowth(std::span<const tree::ExpandedNode> chosen, Plan &plan);

} // namespace deft::plan
