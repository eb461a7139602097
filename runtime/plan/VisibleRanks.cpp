#include "runtime/plan/Planner.h"
#include "runtime/plan/VisibleTree.h"

/// The part of VisibleTree that knows of ranks: what this one holds, and how its leaves grow.
namespace deft::plan {

using Holder = tree::Ranks::Holder;

/// What is read here of the node's stretches.
void VisibleTree::findHeld(const tree::Node &node, int index) {
  held_.clear();
  for (const Positions &stretch : stretches_)
    if (ranks_)
      ranks_->find(index, node.location, stretch.begin, stretch.end, mayJoin_, held_);
    else
      held_.push_back(
          {stretch.begin, stretch.end, stretch.end - stretch.begin, node.location + stretch.begin});
}

tree::Ranks::Holder VisibleTree::holderOfGrowth(const tree::Node &leaf, int index) const {
  return ranks_->holderOfNext(index, leaf.location, leaf.tokens, leaf.tokens + Planner::kMostGrowth);
}

/// As Plan::Leaf::canGrow, where nothing but ranks is in the way.
int VisibleTree::growthOf(const Place &place, const tree::Node &leaf, int index) const {
  if (!ranks_)
    return 1;
  const Holder holder = holderOfGrowth(leaf, index);
  if (holder == Holder::Other)
    return 2;
  if (place.tokens == 0)
    return 0;
  const int end = leaf.location + leaf.tokens, placeEnd = place.location + place.tokens;
  if (ranks_->layout() != tree::RankLayout::Interleaved)
    return holder == Holder::Own && placeEnd == end ? 1 : 0;
  // What this rank holds of the leaf is one run, behind which its next token lies; or its last tokens are.
  const bool isOneRun =
      mayJoin_ || (holder == Holder::Own && ranks_->holderOf(index, end - 1) == ranks_->rank());
  return isOneRun && placeEnd == ranks_->heldBefore(end) ? 3 : 0;
}

/// As Plan::Leaf::heldNext.
std::uint64_t VisibleTree::heldNextOf(const tree::Node &leaf, int index) const {
  static_assert(Planner::kMostGrowth <= 64, "a leaf has a bit for each token that it may gain");
  std::uint64_t held = 0;
  for (int i = 0; i < Planner::kMostGrowth; ++i)
    if (ranks_->holderOf(index, leaf.location + leaf.tokens + i) == ranks_->rank())
      held |= std::uint64_t{1} << i;
  return held;
}

} // namespace deft::plan
