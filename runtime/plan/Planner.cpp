#include "runtime/plan/Planner.h"

#include <algorithm>
#include <string>

namespace deft::plan {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

Result<void> checkArguments(const tree::KvTree &tree, const VariantFacts &facts, const config::Config &config,
                            int mostRows) {
  if (mostRows < facts.ratio)
    return Error{ErrorCode::Usage,
                 "the largest tile_q is " + std::to_string(mostRows) + " rows, one query has " +
                     std::to_string(facts.ratio),
                 ""};
  if (config.chunkTokens < 0)
    return Error{ErrorCode::Usage,
                 "chunk is " + std::to_string(config.chunkTokens) + " tokens, must be positive",
                 "0 lets the planner fill the machine"};
  if (tree.tokens() > tree::KvTree::kMaxTokens)
    return Error{ErrorCode::Diagnostics,
                 "the tree has " + std::to_string(tree.tokens()) + " tokens, at most " +
                     std::to_string(tree::KvTree::kMaxTokens) + " can be planned",
                 ""};
  return {};
}

} // namespace

Result<void> Planner::make(const tree::KvTree &tree, const VariantFacts &facts, const config::Config &config,
                           int blocks, Plan &plan) {
  int mostRows = 0;
  for (const config::PhaseConfig &phase : config.phases)
    mostRows = std::max(mostRows, phase.tileQ);
  if (auto checked = checkArguments(tree, facts, config, mostRows); !checked)
    return checked;

  view_.build(tree);
  tiles_.clear();
  if (auto made = makeTiles(facts, config, mostRows); !made)
    return made;
  if (tiles_.isFull())
    return Error{ErrorCode::Diagnostics,
                 "the plan needs more than " + std::to_string(TileList::kMostRuns) + " runs",
                 "use partition `node`, which reads every token once"};

  plan.generation = tree.generation();
  plan.structureGeneration = tree.structureGeneration();
  plan.callerIndex = view_.callerIndex;
  plan.queryPos = view_.queryPos;
  noteLeaves(tree, plan);
  const int chunkTokens = config.chunkTokens > 0
                              ? (std::min(config.chunkTokens, tree::KvTree::kMaxTokens) + kChunkStep - 1) /
                                    kChunkStep * kChunkStep
                              : chooseChunkTokens(tiles_.tiles, facts.kvHeads, blocks);
  if (auto cut = cutter_.cut(view_, tiles_, chunkTokens, true, plan); !cut)
    return cut;
  sorter_.sort(config, facts.ratio, plan);
  return {};
}

Result<void> Planner::makeTiles(const VariantFacts &facts, const config::Config &config, int mostRows) {
  const int mostQueries = mostRows / facts.ratio;
  switch (config.partition) {
  case spec::Partition::Union:
  case spec::Partition::Auto:
    makeUnionTiles(view_, mostQueries, scratch_, tiles_);
    return {};
  default:
    return Error{ErrorCode::Usage, "only partition `union` can be planned so far", "use `union` or `auto`"};
  }
}

/// Which leaves may grow in place: all that see the leaf's last token must see the next one, too.
void Planner::noteLeaves(const tree::KvTree &tree, Plan &plan) const {
  plan.grownTokens = 0;
  plan.leaves.clear();
  for (const Place &place : view_.places) {
    if (place.leaf < 0)
      continue;
    Plan::Leaf leaf{place.node, place.tokens, place.tokens, place.ownEnd, place.ownEnd, place.tokens > 0};
    for (int i = place.ownEnd - 1; i >= place.ownBegin && view_.seen[i] == place.tokens; --i) {
      const bool follows = tree.queries()[view_.callerIndex[i]].position == tree::Query::kWhole;
      leaf.canGrow &= follows;
      leaf.followBegin = i;
    }
    // Nobody reads to the end, nobody follows: the leaf may grow, and nothing changes.
    plan.leaves.push_back(leaf);
  }
}

Result<Plan> makePlan(const tree::KvTree &tree, const VariantFacts &facts, const config::Config &config,
                      int blocks) {
  Planner planner;
  Plan plan;
  if (auto made = planner.make(tree, facts, config, blocks, plan); !made)
    return made.error();
  return plan;
}

PlanSummary summarize(const Plan &plan, const VariantFacts &facts) {
  PlanSummary summary;
  summary.items = static_cast<int>(plan.items.size());
  summary.partialSlots = plan.partialSlots;
  summary.mergedQueries = static_cast<int>(plan.mergeQuery.size());
  for (const abi::Item &item : plan.items) {
    summary.directItems += item.partialBegin < 0;
    summary.itemTokens += item.tokens;
  }
  for (const abi::Run &run : plan.runs)
    summary.rowTokens += static_cast<long long>(run.tokens) * (run.queryEnd - run.queryBegin) * facts.ratio;
  return summary;
}

} // namespace deft::plan
