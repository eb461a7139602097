#include "runtime/plan/Tiles.h"

#include <algorithm>

namespace deft::plan {

void TileList::clear() {
  tiles.clear();
  runs.clear();
  isFull_ = false;
}

void TileList::beginTile(int queryBegin, int queryEnd, const Tile &like) {
  Tile tile = like;
  tile.queryBegin = queryBegin;
  tile.queryCount = queryEnd - queryBegin;
  tile.runBegin = static_cast<int>(runs.size());
  tile.runCount = 0;
  tile.tokens = 0;
  tiles.push_back(tile);
}

void TileList::addRun(const Segment &segment) {
  Tile &tile = tiles.back();
  Segment run = segment;
  run.queryBegin = std::max(run.queryBegin, tile.queryBegin);
  run.queryEnd = std::min(run.queryEnd, tile.queryBegin + tile.queryCount);
  if (run.queryBegin >= run.queryEnd)
    return;
  tile.tokens += run.tokens;
  if (tile.runCount > 0) {
    Segment &last = runs.back();
    if (last.place == run.place && last.begin + last.tokens == run.begin &&
        last.queryBegin == run.queryBegin && last.queryEnd == run.queryEnd) {
      last.tokens += run.tokens;
      return;
    }
  }
  if (runs.size() >= kMostRuns) {
    isFull_ = true;
    return;
  }
  runs.push_back(run);
  ++tile.runCount;
}

void TileList::endTile() {
  if (tiles.back().tokens == 0)
    tiles.pop_back();
}

void RowTiler::tile(std::span<const Segment> segments, std::span<const int> bounds, TileList &list,
                    const Tile &like) {
  open_.clear();
  std::size_t next = 0;
  for (std::size_t b = 0; b + 1 < bounds.size() && !list.isFull(); ++b) {
    const int begin = bounds[b], end = bounds[b + 1];
    list.beginTile(begin, end, like);
    std::size_t kept = 0;
    // To the tiles that follow, segments of one node that are open now differ no longer: they become one.
    const auto keep = [&](const Segment &segment) {
      if (kept > 0 && open_[kept - 1].place == segment.place)
        open_[kept - 1].tokens += segment.tokens;
      else
        open_[kept++] = segment;
    };
    for (std::size_t i = 0; i < open_.size(); ++i) {
      const Segment segment = open_[i];
      list.addRun(segment);
      if (segment.queryEnd > end)
        keep(segment);
    }
    for (; next < segments.size() && segments[next].queryBegin < end; ++next) {
      list.addRun(segments[next]);
      if (segments[next].queryEnd > end) {
        if (kept == open_.size())
          open_.emplace_back();
        keep(segments[next]);
      }
    }
    open_.resize(kept);
    list.endTile();
  }
}

void RowTiler::tile(std::span<const Segment> segments, int queriesPerTile, TileList &list, const Tile &like) {
  if (segments.empty())
    return;
  int end = 0;
  for (const Segment &segment : segments)
    end = std::max(end, segment.queryEnd);
  bounds_.clear();
  for (int at = segments.front().queryBegin; at < end; at += queriesPerTile)
    bounds_.push_back(at);
  bounds_.push_back(end);
  tile(segments, bounds_, list, like);
}

} // namespace deft::plan
