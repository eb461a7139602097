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
  groupEnd_.resize(view.places.size());
  int *const groupEnd = groupEnd_.data();
  const char *const isJoined = isJoined_.data();
  int deepest = 0;
  for (int p = 0; p < count; ++p) {
    const Place &place = places[p];
    groupEnd[p] = place.readersEnd;
    deepest = std::max(deepest, place.depth);
    if (isJoined[p] != 0 && place.parent >= 0 && place.ownBegin < place.readersEnd)
      groupEnd[place.parent] = std::min(groupEnd[place.parent], place.ownBegin);
  }
  levels_.resize(std::max(levels_.size(), static_cast<std::size_t>(deepest) + 1));
  Level *const levels = levels_.data();
  Path last;
  changed_ = 0;
  for (int p = 0; p < count && !list.isFull(); ++p) {
    const Place &place = places[p];
    const bool isWithParent = isJoined[p] != 0 && place.depth > 0;
    const int end = groupEnd[p];
    if (!isWithParent && end == place.readersEnd) { // most places are in nobody's group
      scratch.tiler.tileNode(view, place, queriesPerTile, list, {});
      continue;
    }
    const int depth = place.depth;
    if (isWithParent) {
      const Level &above = levels[depth - 1];
      levels[depth] = {p, above.top, above.groupRuns + (place.tokens > 0), above.groupTokens + place.tokens};
    } else {
      levels[depth] = {p, depth, place.tokens > 0, place.tokens};
    }
    changed_ = std::min(changed_, depth);
    if (place.ownBegin >= end)
      continue;
    if (end - place.ownBegin == 1)
      addPath(view, place, place.ownBegin, last, list);
    else
      addGroup(view, place, end, queriesPerTile, scratch, list);
  }
}

/// The group of one query: neighbours share most of their paths.
void GreedyPartition::addPath(const TreeView &view, const Place &place, int query, Path &last,
                              TileList &list) {
  const Level &level = levels_[place.depth];
  const bool isOwn = query < place.ownEnd;
  const int seen = isOwn ? view.seen[query] : place.tokens;
  const int tokens = level.groupTokens - place.tokens + seen;
  if (tokens == 0)
    return;
  int from = level.top, shared = 0;
  if (last.top == level.top && changed_ > level.top) {
    from = std::min({changed_, last.isWhole ? last.end : last.end - 1, place.depth});
    shared = from > level.top ? levels_[from - 1].groupRuns : 0;
  }
  const std::size_t runBegin = list.runs.size();
  for (; from < place.depth; ++from)
    if (const int p = levels_[from].place, all = view.places[p].tokens; all > 0)
      list.addPathRun(p, all);
  if (seen > 0)
    list.addPathRun(levels_[from].place, seen);
  list.endPath(query, shared, runBegin, tokens);
  last = {level.top, place.depth + 1, seen == place.tokens};
  changed_ = place.depth + 1;
}

void GreedyPartition::addGroup(const TreeView &view, const Place &place, int end, int queriesPerTile,
                               PartitionScratch &scratch, TileList &list) const {
  const int begin = place.ownBegin, top = levels_[place.depth].top;
  std::vector<Segment> &segments = scratch.segments;
  segments.clear();
  for (int level = top; level < place.depth; ++level)
    if (const int p = levels_[level].place, tokens = view.places[p].tokens; tokens > 0)
      segments.emplace_back(p, 0, tokens, begin, end);
  for (int s = place.segmentBegin; s < place.segmentEnd; ++s) {
    Segment segment = view.segments[s];
    segment.queryEnd = std::min(segment.queryEnd, end);
    if (segment.queryBegin < segment.queryEnd)
      segments.push_back(segment);
  }
  if (end - begin <= queriesPerTile)
    list.addTile(segments);
  else
    scratch.tiler.tile(segments, queriesPerTile, list);
}

} // namespace deft::plan
