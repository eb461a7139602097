#include "runtime/plan/Greedy.h"

#include <algorithm>

namespace deft::plan {

void GreedyPartition::assign(const tree::KvTree &tree, TreeView &view, const CostModel &model,
                             int chunkTokens) {
  edges_.solve(view, model, chunkTokens);
  isJoined_.assign(tree.nodes().size(), 0);
  for (int p = 0; p < view.placeCount(); ++p)
    isJoined_[view.places[p].node] = edges_.isJoined()[p];
  if (edges_.needsOrder())
    view.build(tree, isJoined_);
}

void GreedyPartition::assign(const tree::KvTree &tree, TreeView &view, const std::vector<char> &isJoined) {
  isJoined_ = isJoined;
  view.build(tree, isJoined_);
}

void GreedyPartition::makeTiles(const TreeView &view, int queriesPerTile, PartitionScratch &scratch,
                                TileList &list) {
  groupEnd_.resize(view.places.size());
  for (int p = 0; p < view.placeCount(); ++p) {
    const Place &place = view.places[p];
    groupEnd_[p] = place.readersEnd;
    if (place.parent >= 0 && isJoined_[place.node] && place.ownBegin < place.readersEnd)
      groupEnd_[place.parent] = std::min(groupEnd_[place.parent], place.ownBegin);
  }
  for (int p = 0; p < view.placeCount() && !list.isFull(); ++p)
    if (view.places[p].ownBegin < groupEnd_[p])
      addGroup(view, p, groupEnd_[p], queriesPerTile, scratch, list);
}

void GreedyPartition::addGroup(const TreeView &view, int leaf, int end, int queriesPerTile,
                               PartitionScratch &scratch, TileList &list) {
  const int begin = view.places[leaf].ownBegin;
  const bool isOneTile = end - begin <= queriesPerTile;
  const Place &place = view.places[leaf];
  if (isOneTile && !isJoined_[place.node] && place.segmentEnd - place.segmentBegin == 1) { // most of them
    Segment segment = view.segments[place.segmentBegin];
    segment.queryEnd = std::min(segment.queryEnd, end);
    if (segment.queryBegin < segment.queryEnd)
      list.addTile(segment);
    return;
  }
  if (isOneTile)
    list.beginTile(begin, end);
  scratch.segments.clear();
  const auto addPlace = [&](int p) {
    for (int s = view.places[p].segmentBegin; s < view.places[p].segmentEnd; ++s) {
      if (isOneTile) {
        list.addRun(view.segments[s]);
        continue;
      }
      Segment segment = view.segments[s];
      segment.queryBegin = std::max(segment.queryBegin, begin);
      segment.queryEnd = std::min(segment.queryEnd, end);
      if (segment.queryBegin < segment.queryEnd)
        scratch.segments.push_back(segment);
    }
  };
  chain_.clear();
  for (int p = leaf; isJoined_[view.places[p].node] && view.places[p].parent >= 0;)
    chain_.push_back(p = view.places[p].parent);
  for (std::size_t i = chain_.size(); i-- > 0;)
    addPlace(chain_[i]);
  addPlace(leaf);
  if (isOneTile)
    list.endTile();
  else
    scratch.tiler.tile(scratch.segments, queriesPerTile, list);
}

} // namespace deft::plan
