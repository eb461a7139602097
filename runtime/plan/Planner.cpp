#include "runtime/plan/Planner.h"

#include "runtime/plan/Tiles.h"

#include <algorithm>
#include <string>

namespace deft::plan {

using support::Error;
using support::ErrorCode;
using support::Result;

Result<Plan> makePlan(const tree::KvTree &tree, const VariantFacts &facts, const config::Config &config,
                      int blocks) {
  if (config.partition != spec::Partition::Union && config.partition != spec::Partition::Auto)
    return Error{ErrorCode::Usage, "only partition `union` can be planned so far", "use `union` or `auto`"};
  int mostRows = 0;
  for (const config::PhaseConfig &phase : config.phases)
    mostRows = std::max(mostRows, phase.tileQ);
  if (mostRows < facts.ratio)
    return Error{ErrorCode::Usage,
                 "the largest tile_q is " + std::to_string(mostRows) + " rows, one query has " +
                     std::to_string(facts.ratio),
                 ""};
  if (config.chunkTokens < 0)
    return Error{ErrorCode::Usage,
                 "chunk is " + std::to_string(config.chunkTokens) + " tokens, must be positive",
                 "0 lets the planner fill the machine"};

  std::int64_t tokens = 0;
  for (const tree::Node &node : tree.nodes())
    tokens += node.tokens;
  if (tokens > tree::KvTree::kMaxTokens)
    return Error{ErrorCode::Diagnostics,
                 "the tree has " + std::to_string(tokens) + " tokens, at most " +
                     std::to_string(tree::KvTree::kMaxTokens) + " can be planned",
                 ""};

  const tree::QueryOrder order = tree.queryOrder();
  Plan plan;
  plan.generation = tree.generation();
  plan.callerIndex = order.callerIndex;
  plan.queryPos.reserve(order.callerIndex.size());
  for (int caller : order.callerIndex)
    plan.queryPos.push_back(tree.pathTokens(tree.queries()[caller]) - 1);

  const TileList tiles = makeUnionTiles(tree, order, mostRows / facts.ratio);
  const int chunkTokens = config.chunkTokens > 0
                              ? (std::min(config.chunkTokens, tree::KvTree::kMaxTokens) + 15) / 16 * 16
                              : chooseChunkTokens(tiles, facts.kvHeads, blocks);
  if (auto cut = cutIntoItems(tiles, chunkTokens, plan); !cut)
    return cut.error();
  sortIntoPhases(config, facts.ratio, plan);
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
