#include "runtime/plan/Deal.h"
#include "runtime/plan/Planner.h"
#include "runtime/plan/Unfilled.h"
#include "runtime/plan/WindowStarts.h"
#include "runtime/plan/WriteAhead.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace deft::plan {

namespace {

// Array pointers in locals: otherwise the compiler would reload them after each store to another array.

/// The runs from the first tail on: those that change, which are usually all.
WriteAhead aheadOfTails(const Plan &plan) {
  const auto first = plan.tails.empty() ? plan.runs.size() : static_cast<std::size_t>(plan.tails[0].run);
  return {plan.runs.data() + first, plan.runs.size() - first};
}

/// Whether queries of the leaf lose tokens in the middle of a run: the run would still read them, although
/// the host may have freed their page.
bool opensGap(const Plan &plan, const Plan::Leaf &leaf, int more) {
  if (leaf.followBegin == leaf.followEnd || plan.strictChunk > 0)
    return false;
  const int qPos = plan.queryPos[static_cast<std::size_t>(leaf.followBegin)];
  return plan.reach.opensGap(qPos, qPos + more);
}

/// Computes the growth of leaves, if the plan can follow it. Also prefetches the lines of its runs.
bool findGained(const tree::KvTree &tree, const Plan &plan, std::span<int> allGained,
                std::span<int> allHeld) {
  constexpr int kLinesOfLeaf = 2; // it usually has one to four runs
  WriteAhead ahead = aheadOfTails(plan);
  const tree::Node *const nodes = tree.nodes().data();
  const std::size_t nodeCount = tree.nodes().size();
  int *gained = allGained.data(), *held = allHeld.data();
  for (const Plan::Leaf &leaf : plan.leaves) {
    ahead.askLines(kLinesOfLeaf);
    if (static_cast<std::size_t>(leaf.node) >= nodeCount || !nodes[leaf.node].isAlive)
      return false; // a plan of another tree
    const int tokens = nodes[leaf.node].tokens, more = tokens - leaf.tokens;
    if (more != 0 && (leaf.canGrow == 0 || tokens - leaf.plannedTokens > Planner::kMostGrowth ||
                      opensGap(plan, leaf, more)))
      return false;
    *gained++ = more;
    *held++ = leaf.heldOf(more);
  }
  if (plan.strictChunk > 0)
    for (const Plan::Tail &tail : plan.tails)
      if (plan.items[static_cast<std::size_t>(tail.item)].tokens +
              allHeld[static_cast<std::size_t>(tail.leaf)] >
          plan.strictChunk)
        return false;
  return true;
}

/// Lengthens the runs at the ends of leaves and moves later runs of the same item. Returns the most tokens
/// that an item has gained.
int growItems(Plan &plan, std::span<const int> allHeld) {
  const int *const ofLeaf = allHeld.data();
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
      const int more = ofLeaf[tail->leaf];
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

/// Lengthens the leaves by their growth and moves their queries; with `isBack`, undoes that.
void growLeaves(Plan &plan, std::span<const int> allGained, std::span<const int> allHeld,
                bool isBack = false) {
  const int *gained = allGained.data(), *held = allHeld.data();
  int *const queryPos = plan.queryPos.data();
  std::int64_t read = 0;
  for (Plan::Leaf &leaf : plan.leaves) {
    const int more = isBack ? -*gained++ : *gained++, own = isBack ? -*held++ : *held++;
    leaf.tokens += more;
    for (int i = leaf.followBegin; i < leaf.followEnd; ++i)
      queryPos[i] += more;
    read += leaf.followBegin < leaf.followEnd ? own : 0;
  }
  plan.readTokens += read;
}

} // namespace

Advance advance(const tree::KvTree &tree, Plan &plan, AdvanceScratch &scratch) {
  if (plan.generation == tree.generation())
    return Advance::Done;
  if (plan.structureGeneration != tree.structureGeneration())
    return Advance::NeedsNewPlan;
  scratch.makeRoomFor(plan);
  if (!findGained(tree, plan, scratch.gained, scratch.held))
    return Advance::NeedsNewPlan;
  growLeaves(plan, scratch.gained, scratch.held);
  if (!findWindowMoves(plan, scratch.moved)) {
    growLeaves(plan, scratch.gained, scratch.held, /*isBack=*/true);
    return Advance::NeedsNewPlan;
  }
  plan.grownTokens += growItems(plan, scratch.held);
  plan.grownTokens += moveWindowStarts(plan, scratch.moved);
  plan.generation = tree.generation();
  return Advance::Done;
}

} // namespace deft::plan
