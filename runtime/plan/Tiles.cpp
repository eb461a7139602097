#include "runtime/plan/Tiles.h"

#include <algorithm>

namespace deft::plan {

void TileList::clear() {
  tiles.clear();
  runs.clear();
  pathRuns_ = 0;
}

void RowTiler::tile(std::span<const Segment> segments, std::span<const int> bounds, TileList &list,
                    const Tile &like) {
  open_.resize(std::max(open_.size(), segments.size()));
  Segment *const open = open_.data();
  std::size_t openCount = 0;
  const Segment *next = segments.data(), *const segmentEnd = next + segments.size();
  for (std::size_t b = 0; b + 1 < bounds.size() && !list.isFull(); ++b) {
    const int begin = bounds[b], end = bounds[b + 1];
    list.beginTile(begin, end, like);
    std::size_t kept = 0;
    // To the tiles that follow, segments of one node that are open now differ no longer: they become one.
    const auto keep = [&](const Segment &segment) {
      if (kept > 0 && open[kept - 1].place == segment.place)
        open[kept - 1].tokens += segment.tokens;
      else
        open[kept++] = segment;
    };
    // What is open has readers before these queries and among them, what begins among them has none before.
    for (std::size_t i = 0; i < openCount; ++i) {
      const Segment segment = open[i];
      list.addRun(segment.place, segment.begin, segment.tokens, begin, std::min(segment.queryEnd, end));
      if (segment.queryEnd > end)
        keep(segment);
    }
    for (; next != segmentEnd && next->queryBegin < end; ++next) {
      list.addRun(next->place, next->begin, next->tokens, next->queryBegin, std::min(next->queryEnd, end));
      if (next->queryEnd > end)
        keep(*next);
    }
    openCount = kept;
    list.endTile();
  }
}

void RowTiler::tile(std::span<const Segment> segments, int queriesPerTile, TileList &list, const Tile &like) {
  if (segments.empty())
    return;
  int end = 0;
  for (const Segment &segment : segments)
    end = std::max(end, segment.queryEnd);
  if (const int begin = segments.front().queryBegin; end - begin <= queriesPerTile) {
    list.beginTile(begin, end, like);
    for (const Segment &segment : segments)
      list.addRun(segment);
    list.endTile();
    return;
  }
  bounds_.clear();
  for (int at = segments.front().queryBegin; at < end; at += queriesPerTile)
    bounds_.push_back(at);
  bounds_.push_back(end);
  tile(segments, bounds_, list, like);
}

} // namespace deft::plan
