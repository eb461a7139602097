#include "runtime/plan/Planner.h"
#include "runtime/plan/VisibleTree.h"

/// The part of VisibleTree for ranks: the tokens that this one holds, and the growth of its leaves.
namespace deft::plan {

using Holder = tree::Ranks::Holder;

/// Finds the parts of the node's stretches that this rank reads.
void VisibleTree::findHeld(const tree::Node &node, int index) {
  held_.clear();
  if (isStandIn() && standIns_[static_cast<std::size_t>(own_.front().second)] == 0)
    return;
  for (const Positions &stretch : stretches_)
    if (ranks_ && !isStandIn())
      ranks_->find(index, node.location, stretch.begin, stretch.end, mayJoin_, held_);
    else
      held_.push_back(
          {stretch.begin, stretch.end, stretch.end - stretch.begin, node.location + stretch.begin});
}

tree::Ranks::Holder VisibleTree::holderOfGrowth(const tree::Node &leaf, int index) const {
  return ranks_->holderOfNext(index, leaf.location, leaf.tokens, leaf.tokens + Planner::kMostGrowth);
}

/// As Plan::Leaf::canGrow, if only ranks prevent growth.
int VisibleTree::growthOf(const Place &place, const tree::Node &leaf, int index) const {
  if (!ranks_)
    return 1;
  if (isStandIn())
    return 0;
  const Holder holder = holderOfGrowth(leaf, index);
  if (holder == Holder::Other)
    return 2;
  if (place.tokens == 0)
    return 0;
  const int end = leaf.location + leaf.tokens, placeEnd = place.location + place.tokens;
  if (ranks_->layout() != tree::RankLayout::Interleaved)
    return holder == Holder::Own && placeEnd == end ? 1 : 0;
  // The rank's part must be one run that its next token follows, or it must hold the leaf's last tokens.
  const bool isOneRun =
      mayJoin_ || (holder == Holder::Own && ranks_->holderOf(index, end - 1) == ranks_->rank());
  return isOneRun && placeEnd == ranks_->heldBefore(end) ? 3 : 0;
}

/// As in Plan::Leaf::heldNext.
std::uint64_t VisibleTree::heldNextOf(const tree::Node &leaf, int index) const {
  static_assert(Planner::kMostGrowth <= 64, "a leaf has a bit for each token that it may gain");
  std::uint64_t held = 0;
  for (int i = 0; i < Planner::kMostGrowth; ++i)
    if (ranks_->holderOf(index, leaf.location + leaf.tokens + i) == ranks_->rank())
      held |= std::uint64_t{1} << i;
  return held;
}

} // namespace deft::plan
