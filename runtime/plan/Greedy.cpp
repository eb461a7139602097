#include "runtime/plan/Greedy.h"

#include <algorithm>

namespace deft::plan {

void GreedyPartition::assign(TreeView &view, const CostModel &model, int chunkTokens) {
  edges_.solve(view, model, chunkTokens);
  isJoined_ = edges_.isJoined();
  mayJoin_ = edges_.mayJoin();
  if (mayJoin_)
    view.putLast(isJoined_);
}

void GreedyPartition::assign(TreeView &view, const std::vector<char> &isJoined) {
  isJoined_ = isJoined;
  mayJoin_ = true;
  view.putLast(isJoined_);
}

void GreedyPartition::makeTiles(const TreeView &view, int queriesPerTile, PartitionScratch &scratch,
                                TileList &list) {
  if (!mayJoin_)
    return makeNodeTiles(view, queriesPerTile, {}, scratch, list);
  const int count = view.placeCount();
  const Place *const places = view.places.data();
  const char *const isJoined = isJoined_.data();
  for (std::vector<int> *values : {&groupEnd_, &groupTop_, &runsTo_})
    values->resize(view.places.size());
  int *const groupEnd = groupEnd_.data(), *const groupTop = groupTop_.data(), *const runsTo = runsTo_.data();
  for (int p = 0; p < count; ++p) {
    const Place &place = places[p];
    groupEnd[p] = place.readersEnd;
    if (isJoined[p] != 0 && place.parent >= 0 && place.ownBegin < place.readersEnd)
      groupEnd[place.parent] = std::min(groupEnd[place.parent], place.ownBegin);
  }
  int lastTop = -1, shared = 0; // of the path added last, and the runs from a root on that are the next one's
  for (int p = 0; p < count && !list.isFull(); ++p) {
    const Place &place = places[p];
    const int parent = place.parent, above = parent < 0 ? 0 : runsTo[parent];
    const int top = parent >= 0 && isJoined[p] != 0 ? groupTop[parent] : p;
    groupTop[p] = top;
    runsTo[p] = above + (place.tokens > 0);
    shared = std::min(shared, above);
    const int begin = place.ownBegin, end = groupEnd[p];
    if (top == p && end == place.readersEnd) { // most places are in nobody's group
      scratch.tiler.tileNode(view, place, queriesPerTile, list, {});
    } else if (end - begin == 1) {
      const int seen = begin < place.ownEnd ? view.seen(place, begin) : place.tokens;
      const int tokens = place.position + seen - places[top].position;
      if (tokens == 0)
        continue;
      const int aboveTop = runsTo[top] - (places[top].tokens > 0);
      list.addPath(begin, p, above + (seen > 0) - aboveTop,
                   top == lastTop ? std::max(shared - aboveTop, 0) : 0, tokens);
      lastTop = top;
      shared = seen == place.tokens ? runsTo[p] : above;
    } else if (begin < end) {
      addGroup(view, p, end, queriesPerTile, scratch, list);
    }
  }
}

void GreedyPartition::addGroup(const TreeView &view, int p, int end, int queriesPerTile,
                               PartitionScratch &scratch, TileList &list) const {
  const Place &place = view.places[p];
  const int top = groupTop_[p];
  std::vector<Segment> &segments = scratch.segments;
  segments.clear();
  for (int above = p; above != top;) {
    above = view.places[above].parent;
    if (const int tokens = view.places[above].tokens; tokens > 0)
      segments.emplace_back(above, 0, tokens, place.ownBegin, end);
  }
  std::reverse(segments.begin(), segments.end());
  for (int s = place.segmentBegin; s < place.segmentEnd; ++s) {
    Segment segment = view.segments[s];
    segment.queryEnd = std::min(segment.queryEnd, end);
    if (segment.queryBegin < segment.queryEnd)
      segments.push_back(segment);
  }
  if (end - place.ownBegin <= queriesPerTile)
    list.addTile(segments);
  else
    scratch.tiler.tile(segments, queriesPerTile, list);
}

} // namespace deft::plan
