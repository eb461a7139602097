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
  groups_.resize(view.places.size());
  Group *const groups = groups_.data();
  for (int p = 0; p < count; ++p) {
    const Place &place = places[p];
    groups[p].end = place.readersEnd;
    if (isJoined[p] != 0 && place.ownBegin < place.readersEnd)
      groups[place.parent].end = std::min(groups[place.parent].end, place.ownBegin);
  }
  int lastTop = -1, shared = 0; // of the path added last, and the runs from a root on that are the next one's
  for (int p = 0; p < count; ++p) {
    const Place &place = places[p];
    Group &group = groups[p];
    const int above = place.parent < 0 ? 0 : groups[place.parent].runsTo;
    const int begin = place.ownBegin, end = group.end;
    group.top = isJoined[p] != 0 ? groups[place.parent].top : p;
    group.runsTo = above + (place.tokens > 0);
    shared = std::min(shared, above);
    if (group.top == p && end == place.readersEnd) { // most places are in nobody's group
      scratch.tiler.tileNode(view, place, queriesPerTile, list, {});
    } else if (end - begin == 1) {
      const int seen = begin < place.ownEnd ? view.seen(place, begin) : place.tokens;
      const Place &top = places[group.top];
      const int tokens = place.position + seen - top.position;
      if (tokens == 0)
        continue;
      const int aboveTop = groups[group.top].runsTo - (top.tokens > 0);
      list.addPath(begin, p, above + (seen > 0) - aboveTop,
                   group.top == lastTop ? std::max(shared - aboveTop, 0) : 0, tokens);
      lastTop = group.top;
      shared = seen == place.tokens ? group.runsTo : above;
    } else if (begin < end) {
      if (list.isFull())
        return;
      addGroup(view, p, queriesPerTile, scratch, list);
    }
  }
}

void GreedyPartition::addGroup(const TreeView &view, int p, int queriesPerTile, PartitionScratch &scratch,
                               TileList &list) const {
  const Place &place = view.places[p];
  const auto [end, top, runsTo] = groups_[p];
  const bool isOneTile = end - place.ownBegin <= queriesPerTile;
  std::vector<Segment> &segments = isOneTile ? list.runs : scratch.segments;
  if (!isOneTile)
    segments.clear();
  const std::size_t first = segments.size();
  for (int above = p; above != top;) {
    above = view.places[above].parent;
    if (const int tokens = view.places[above].tokens; tokens > 0)
      segments.emplace_back(above, 0, tokens, place.ownBegin, end);
  }
  std::reverse(segments.begin() + static_cast<std::ptrdiff_t>(first), segments.end());
  for (int s = place.segmentBegin; s < place.segmentEnd; ++s) {
    Segment segment = view.segments[s];
    segment.queryEnd = std::min(segment.queryEnd, end);
    if (segment.queryBegin < segment.queryEnd)
      segments.push_back(segment);
  }
  if (isOneTile)
    list.addTile(first);
  else
    scratch.tiler.tile(segments, queriesPerTile, list);
}

} // namespace deft::plan
