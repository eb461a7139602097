#include "runtime/plan/Deal.h"
#include "runtime/plan/Planner.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace deft::plan {

namespace {

/// What a tail gains.
int grownBy(const tree::KvTree &tree, const Plan &plan, const Plan::Tail &tail) {
  const Plan::Leaf &leaf = plan.leaves[static_cast<std::size_t>(tail.leaf)];
  return tree.nodes()[static_cast<std::size_t>(leaf.node)].tokens - leaf.tokens;
}

bool canAdvance(const tree::KvTree &tree, const Plan &plan) {
  const tree::Node *const nodes = tree.nodes().data();
  const auto count = static_cast<unsigned>(tree.nodes().size());
  for (const Plan::Leaf &leaf : plan.leaves) {
    if (static_cast<unsigned>(leaf.node) >= count || !nodes[leaf.node].isAlive)
      return false; // a plan of another tree
    const int tokens = nodes[leaf.node].tokens;
    if (tokens != leaf.tokens && (leaf.canGrow == 0 || tokens - leaf.plannedTokens > Planner::kMostGrowth))
      return false;
  }
  if (plan.strictChunk > 0)
    for (const Plan::Tail &tail : plan.tails)
      if (plan.items[static_cast<std::size_t>(tail.item)].tokens + grownBy(tree, plan, tail) >
          plan.strictChunk)
        return false;
  return true;
}

/// Lengthens the runs at the ends of leaves and moves those behind them in the same item. Returns the most
/// tokens that an item has gained.
int growItems(const tree::KvTree &tree, Plan &plan) {
  const Plan::Tail *tail = plan.tails.data(), *const end = tail + plan.tails.size();
  abi::Run *const runs = plan.runs.data();
  int most = 0, tableTokens = plan.tableTokens;
  while (tail != end) {
    const int itemIndex = tail->item;
    abi::Item &item = plan.items[static_cast<std::size_t>(itemIndex)];
    abi::Run *run = runs + tail->run;
    int gained = 0;
    for (; tail != end && tail->item == itemIndex; ++tail, ++run) {
      for (; run < runs + tail->run; ++run)
        run->begin += gained;
      const int more = grownBy(tree, plan, *tail);
      run->begin += gained;
      run->tokens += more;
      tableTokens = std::max(tableTokens, run->location + run->tokens);
      gained += more;
    }
    if (gained > 0)
      for (abi::Run *const itemEnd = runs + item.runBegin + item.runCount; run < itemEnd; ++run)
        run->begin += gained;
    item.tokens += gained;
    if (item.dealtTiles > 0)
      countDealt(item, {runs + item.runBegin, static_cast<std::size_t>(item.runCount)});
    most = std::max(most, gained);
  }
  plan.tableTokens = tableTokens;
  return most;
}

/// What follows from it for the leaves and their queries.
void growLeaves(const tree::KvTree &tree, Plan &plan) {
  const tree::Node *const nodes = tree.nodes().data();
  int *const queryPos = plan.queryPos.data();
  std::int64_t read = 0;
  for (Plan::Leaf &leaf : plan.leaves) {
    const int more = nodes[leaf.node].tokens - leaf.tokens;
    leaf.tokens += more;
    for (int i = leaf.followBegin; i < leaf.followEnd; ++i)
      queryPos[i] += more;
    read += leaf.followBegin < leaf.followEnd ? more : 0;
  }
  plan.readTokens += read;
}

} // namespace

Advance advance(const tree::KvTree &tree, Plan &plan) {
  if (plan.generation == tree.generation())
    return Advance::Done;
  if (plan.structureGeneration != tree.structureGeneration() || !canAdvance(tree, plan))
    return Advance::NeedsNewPlan;
  plan.grownTokens += growItems(tree, plan);
  growLeaves(tree, plan);
  plan.generation = tree.generation();
  return Advance::Done;
}

} // namespace deft::plan
