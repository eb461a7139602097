#include "runtime/plan/Deal.h"
#include "runtime/plan/Planner.h"

#include <algorithm>

namespace deft::plan {

namespace {

/// What a tail gains.
int grownBy(const tree::KvTree &tree, const Plan &plan, const Plan::Tail &tail) {
  const Plan::Leaf &leaf = plan.leaves[static_cast<std::size_t>(tail.leaf)];
  return tree.nodes()[static_cast<std::size_t>(leaf.node)].tokens - leaf.tokens;
}

bool canAdvance(const tree::KvTree &tree, const Plan &plan) {
  for (const Plan::Leaf &leaf : plan.leaves) {
    if (!tree.isAlive(leaf.node))
      return false; // a plan of another tree
    const int tokens = tree.nodes()[static_cast<std::size_t>(leaf.node)].tokens;
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
  int most = 0;
  for (std::size_t t = 0; t < plan.tails.size();) {
    const int itemIndex = plan.tails[t].item;
    abi::Item &item = plan.items[static_cast<std::size_t>(itemIndex)];
    int gained = 0;
    int run = plan.tails[t].run;
    for (; t < plan.tails.size() && plan.tails[t].item == itemIndex; ++t) {
      for (; run < plan.tails[t].run; ++run)
        plan.runs[static_cast<std::size_t>(run)].begin += gained;
      const int more = grownBy(tree, plan, plan.tails[t]);
      abi::Run &last = plan.runs[static_cast<std::size_t>(run)];
      last.begin += gained;
      last.tokens += more;
      plan.tableTokens = std::max(plan.tableTokens, last.location + last.tokens);
      gained += more;
      ++run;
    }
    for (; gained > 0 && run < item.runBegin + item.runCount; ++run)
      plan.runs[static_cast<std::size_t>(run)].begin += gained;
    item.tokens += gained;
    if (item.dealtTiles > 0)
      countDealt(item, {plan.runs.data() + item.runBegin, static_cast<std::size_t>(item.runCount)});
    most = std::max(most, gained);
  }
  return most;
}

} // namespace

Advance advance(const tree::KvTree &tree, Plan &plan) {
  if (plan.generation == tree.generation())
    return Advance::Done;
  if (plan.structureGeneration != tree.structureGeneration() || !canAdvance(tree, plan))
    return Advance::NeedsNewPlan;
  plan.grownTokens += growItems(tree, plan);
  for (Plan::Leaf &leaf : plan.leaves) {
    const int tokens = tree.nodes()[static_cast<std::size_t>(leaf.node)].tokens;
    for (int i = leaf.followBegin; i < leaf.followEnd; ++i)
      plan.queryPos[static_cast<std::size_t>(i)] += tokens - leaf.tokens;
    if (leaf.followBegin < leaf.followEnd)
      plan.readTokens += tokens - leaf.tokens;
    leaf.tokens = tokens;
  }
  plan.generation = tree.generation();
  return Advance::Done;
}

} // namespace deft::plan
