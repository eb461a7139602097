#include "runtime/plan/Greedy.h"

#include <algorithm>

namespace deft::plan {

void GreedyPartition::assign(TreeView &view, const CostModel &model, int chunkTokens) {
  if (view.isClipped) // groups are whole paths, so nodes whose last readers are hidden stand apart
    return assign(view, {});
  edges_.solve(view, model, chunkTokens);
  assign(view, edges_.joined());
}

void GreedyPartition::assign(TreeView &view, const std::vector<int> &joined) {
  isAnyJoined_ = !joined.empty();
  if (isAnyJoined_)
    view.putLast(joined);
}

void GreedyPartition::makeTiles(const TreeView &view, int queriesPerTile, PartitionScratch &scratch,
                                TileList &list) {
  if (!isAnyJoined_)
    return makeNodeTiles(view, queriesPerTile, {}, scratch, list);
  const int count = view.placeCount();
  const Place *const places = view.places.data();
  const int *const queryPos = view.queryPos.data();
  groups_.resize(view.places.size());
  Group *const groups = groups_.data();
  int lastTop = -1, shared = 0; // of the path added last, and the runs that it shares with the next
  for (int p = 0; p < count; ++p) {
    const Place &place = places[p];
    Group group{p, 0};
    if (place.parent >= 0) {
      const Group &parent = groups[place.parent];
      shared = std::min(shared, parent.runs);
      if (view.isLast(p))
        group = parent;
    }
    const int above = group.runs, whole = above + (place.tokens > 0);
    groups[p] = {group.top, whole};
    const int begin = place.ownBegin, end = place.firstEnd;
    if (begin == end)
      continue;
    const int toPosition = place.position - 1; // queries below see all of the place's tokens, and more
    const int seen = std::min(queryPos[begin] - toPosition, place.tokens);
    // Queries that see less come first: if the first one sees all tokens, all do.
    if (end - begin > queriesPerTile || (seen < place.tokens && queryPos[end - 1] - toPosition != seen)) {
      if (list.isFull())
        return;
      addGroup(view, p, queriesPerTile, scratch, list);
      continue;
    }
    const int tokens = place.position + seen - places[group.top].position;
    if (tokens == 0)
      continue;
    list.addPath(begin, end - begin, p, above + (seen > 0), group.top == lastTop ? shared : 0, tokens);
    lastTop = group.top;
    shared = seen == place.tokens ? whole : above;
  }
}

/// Adds a group with several row tiles, or in which some queries see less of the place than others.
void GreedyPartition::addGroup(const TreeView &view, int p, int queriesPerTile, PartitionScratch &scratch,
                               TileList &list) const {
  const Place &place = view.places[p];
  const int top = groups_[p].top, end = place.firstEnd;
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
  scratch.tiler.tile(segments, queriesPerTile, list);
}

} // namespace deft::plan
