#pragma once

#include "runtime/plan/CostModel.h"
#include "runtime/plan/Plan.h"
#include "runtime/plan/VariantFacts.h"
#include "runtime/tree/ExpandedNodes.h"

#include <span>
#include <vector>

/// A step over a latent cache in two runs: nodes that many read may be cheaper in expanded form, with K and V
/// of each head. To a plan the two forms are like two ranks (tree::Ranks), each with a cache of its own.
namespace deft::plan {

/// One of the two runs, as prices see it.
struct FormRun {
  const VariantFacts &facts;
  const config::Config &config;
  config::CostCoefficients prices;
  int blocks = 1;
};

/// Which of the nodes are cheaper to read expanded: by index in `nodes`, ascending. None where they save less
/// than a second run costs.
std::vector<int> cheaperExpanded(const tree::KvTree &tree, std::span<const tree::ExpandedNode> nodes,
                                 const FormRun &absorbed, const FormRun &expanded);

/// The tree as one of the runs reads it: the expanded one has the chosen nodes, where they lie in its cache,
/// the absorbed one all others. The tree must have no ranks.
tree::KvTree treeOfForm(const tree::KvTree &tree, std::span<const tree::ExpandedNode> chosen,
                        bool isExpanded);

/// Tokens that a chosen node gains have no expanded form: a plan of a tree of one form does not follow them.
void stopGrowth(std::span<const tree::ExpandedNode> chosen, Plan &plan);

} // namespace deft::plan
