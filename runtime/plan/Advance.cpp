#include "runtime/plan/Deal.h"
#include "runtime/plan/Planner.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace deft::plan {

namespace {

/// What leaves have gained. Places of arrays in locals, here and below: after each store to one of the others
/// the compiler would read them again.
class Growth {
public:
  Growth(const tree::KvTree &tree, const Plan &plan)
      : nodes_(tree.nodes().data()), leaves_(plan.leaves.data()) {}

  int of(const Plan::Leaf &leaf) const { return nodes_[leaf.node].tokens - leaf.tokens; }
  int of(const Plan::Tail &tail) const { return of(leaves_[tail.leaf]); }

private:
  const tree::Node *nodes_;
  const Plan::Leaf *leaves_;
};

bool canAdvance(const tree::KvTree &tree, const Growth &growth, const Plan &plan) {
  for (const Plan::Leaf &leaf : plan.leaves) {
    if (!tree.isAlive(leaf.node))
      return false; // a plan of another tree
    const int more = growth.of(leaf), tokens = leaf.tokens + more;
    if (more != 0 && (leaf.canGrow == 0 || tokens - leaf.plannedTokens > Planner::kMostGrowth))
      return false;
  }
  if (plan.strictChunk > 0)
    for (const Plan::Tail &tail : plan.tails)
      if (plan.items[static_cast<std::size_t>(tail.item)].tokens + growth.of(tail) > plan.strictChunk)
        return false;
  return true;
}

/// Lengthens the runs at the ends of leaves and moves those behind them in the same item. Returns the most
/// tokens that an item has gained.
int growItems(const Growth &growth, Plan &plan) {
  const Plan::Tail *tail = plan.tails.data(), *const end = tail + plan.tails.size();
  abi::Run *const runs = plan.runs.toChange().data();
  int most = 0, tableTokens = plan.tableTokens;
  while (tail != end) {
    const int itemIndex = tail->item;
    abi::Item &item = plan.items[static_cast<std::size_t>(itemIndex)];
    abi::Run *run = runs + tail->run;
    int gained = 0;
    for (; tail != end && tail->item == itemIndex; ++tail, ++run) {
      for (; run < runs + tail->run; ++run)
        run->begin += gained;
      const int more = growth.of(*tail);
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
void growLeaves(const Growth &growth, Plan &plan) {
  int *const queryPos = plan.queryPos.data();
  std::int64_t read = 0;
  for (Plan::Leaf &leaf : plan.leaves) {
    const int more = growth.of(leaf);
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
  const Growth growth(tree, plan);
  if (plan.structureGeneration != tree.structureGeneration() || !canAdvance(tree, growth, plan))
    return Advance::NeedsNewPlan;
  plan.grownTokens += growItems(growth, plan);
  growLeaves(growth, plan);
  plan.generation = tree.generation();
  return Advance::Done;
}

} // namespace deft::plan
