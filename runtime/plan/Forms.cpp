#include "runtime/plan/Forms.h"

#include "runtime/plan/VisibleTree.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace deft::plan {
namespace {

/// Microseconds of a token that `queries` queries read, in tiles that are as full as possible.
double tokenUs(const FormRun &run, const CostModel &model, int queries) {
  const int most = model.queriesPerTile(), whole = queries / most, rest = queries % most;
  const auto stepped = [&](int tile) { return model.stepUs(tile) / model.tokenStep(tile); };
  const int tiles = whole + (rest > 0 ? 1 : 0);
  const double firstUs = static_cast<double>(run.facts.tokenBytes()) / (run.prices.cacheGBs * 1e3);
  return whole * stepped(most) + (rest > 0 ? stepped(rest) : 0) + firstUs + (tiles - 1) * model.againUs();
}

/// The fixed cost of a second run: its launches, its queries and results, and the merge of both
/// states.
double secondRunUs(const FormRun &run, int queries) {
  const double heads = static_cast<double>(run.facts.ratio) * run.facts.kvHeads;
  const spec::Tensors &tensors = run.facts.tensors;
  const double bytes = queries * heads * (tensors.q.rowBytes() + 4.0 * tensors.out.rowBytes());
  return 2 * run.prices.launchUs + run.prices.mergeUs + bytes / (run.prices.cacheGBs * 1e3);
}

} // namespace

std::vector<int> cheaperExpanded(const tree::KvTree &tree, std::span<const tree::ExpandedNode> nodes,
                                 const FormRun &absorbed, const FormRun &expanded) {
  if (nodes.empty())
    return {};
  VisibleTree visible;
  TreeView view;
  visible.read(tree, absorbed.facts.reach, absorbed.facts.trimStep, view, !absorbed.facts.readsKvPos);
  CostModel absorbedModel, expandedModel;
  absorbedModel.set(absorbed.facts, absorbed.config, absorbed.prices, absorbed.blocks);
  expandedModel.set(expanded.facts, expanded.config, expanded.prices, expanded.blocks);

  std::vector<double> saved(tree.nodes().size());
  for (const Segment &segment : view.segments) {
    const int queries = segment.queryEnd - segment.queryBegin;
    const auto node = static_cast<std::size_t>(view.places[static_cast<std::size_t>(segment.place)].node);
    saved[node] += segment.tokens *
                   (tokenUs(absorbed, absorbedModel, queries) - tokenUs(expanded, expandedModel, queries));
  }
  std::vector<int> chosen;
  double all = 0;
  for (int i = 0; i < static_cast<int>(nodes.size()); ++i)
    if (const double own = saved[static_cast<std::size_t>(nodes[static_cast<std::size_t>(i)].node)];
        own > 0) {
      chosen.push_back(i);
      all += own;
    }
  if (all <= secondRunUs(expanded, view.queryCount()))
    chosen.clear();
  return chosen;
}

tree::KvTree treeOfForm(const tree::KvTree &tree, std::span<const tree::ExpandedNode> chosen,
                        bool isExpanded) {
  assert(!tree.ranks() && "the two forms take the place of ranks");
  tree::KvTree own = tree;
  std::vector<int> holders(tree.nodes().size(), 0);
  for (const tree::ExpandedNode &node : chosen) {
    holders[static_cast<std::size_t>(node.node)] = 1;
    if (isExpanded) // checkExpanded has verified that it fits
      (void)own.place(node.node, node.location);
  }
  own.setRanks(
      tree::Ranks::make(2, isExpanded ? 1 : 0, tree::RankLayout::ByNode, 1, std::move(holders)).value());
  return own;
}

void stopGrowth(std::span<const tree::ExpandedNode> chosen, Plan &plan) {
  std::vector<int> nodes;
  for (const tree::ExpandedNode &node : chosen)
    nodes.push_back(node.node);
  std::sort(nodes.begin(), nodes.end());
  for (Plan::Leaf &leaf : plan.leaves)
    if (std::binary_search(nodes.begin(), nodes.end(), leaf.node))
      leaf.canGrow = 0;
}

} // namespace deft::plan
