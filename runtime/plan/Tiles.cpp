#include "runtime/plan/Tiles.h"

#include "runtime/plan/Slope.h"

#include <algorithm>

namespace deft::plan {

namespace {

/// Writes the parts of segments that a tile's queries see. A segment that continues the previous one, for the
/// same queries, extends its run.
class TileRuns {
public:
  explicit TileRuns(Segment *to) : first_(to), to_(to) {}

  /// `queryBegin` is the first of these queries that sees a token of a segment with a slope.
  void add(const Segment &segment, int queryBegin, int queryEnd) {
    const int tokens = segment.slope == 0 ? segment.tokens : std::min(segment.tokens, queryEnd - queryBegin);
    const int slope = tokens > 1 ? segment.slope : 0;
    tokens_ += tokens;
    if (to_ != first_ && to_[-1].place == segment.place) {
      Segment &last = to_[-1];
      if (last.begin + last.tokens == segment.begin && last.queryBegin == queryBegin &&
          last.queryEnd == queryEnd && last.slope == 0 && slope == 0) {
        last.tokens += tokens;
        return;
      }
    }
    *to_++ = {segment.place, segment.begin, tokens, queryBegin, queryEnd, slope};
  }
  int count() const { return static_cast<int>(to_ - first_); }
  int tokens() const { return tokens_; }

private:
  Segment *first_, *to_;
  int tokens_ = 0;
};

} // namespace

void TileList::clear() {
  tiles.clear();
  runs.clear();
  pathRuns_ = 0;
}

void RowTiler::tile(std::span<const Segment> segments, std::span<const int> bounds, TileList &list,
                    const Tile &like) {
  open_.resize(std::max(open_.size(), segments.size() + 1));
  Segment *const open = open_.data();
  std::size_t openCount = 0;
  const Segment *next = segments.data(), *const segmentEnd = next + segments.size();
  for (std::size_t b = 0; b + 1 < bounds.size() && !list.isFull(); ++b) {
    const int begin = bounds[b], end = bounds[b + 1];
    TileRuns runs(list.beginTile(openCount + static_cast<std::size_t>(segmentEnd - next)));
    std::size_t kept = 0;
    // For later tiles, open segments of one node are now the same, unless their readers end differently: such
    // neighbours become one segment.
    const auto keepFlat = [&](const Segment &segment) {
      if (kept > 0 && open[kept - 1].place == segment.place &&
          open[kept - 1].begin + open[kept - 1].tokens == segment.begin &&
          open[kept - 1].queryEnd == segment.queryEnd)
        open[kept - 1].tokens += segment.tokens;
      else
        open[kept++] = segment;
    };
    // The part of a slope that all later queries see is flat for them. At most one segment has another part,
    // since that contains the next query's own token; it is the last open segment.
    const auto keep = [&](const Segment &segment) {
      if (segment.slope == 0)
        return keepFlat(segment);
      Segment seen = segment, rest = segment;
      seen.tokens = std::min(segment.tokens, end - segment.queryBegin);
      seen.slope = 0;
      keepFlat(seen);
      if (seen.tokens == segment.tokens)
        return;
      dropFirst(rest, seen.tokens);
      open[kept++] = rest;
    };
    // Open segments also have readers before these queries; segments that begin among them do not.
    for (std::size_t i = 0; i < openCount; ++i) {
      const Segment segment = open[i];
      runs.add(segment, begin, std::min(segment.queryEnd, end)); // a slope begins here
      if (segment.queryEnd > end)
        keep(segment);
    }
    for (; next != segmentEnd && next->queryBegin < end; ++next) {
      runs.add(*next, next->queryBegin, std::min(next->queryEnd, end));
      if (next->queryEnd > end)
        keep(*next);
    }
    openCount = kept;
    list.endTile(begin, end, runs.count(), runs.tokens(), like);
  }
}

void RowTiler::tile(std::span<const Segment> segments, int queriesPerTile, TileList &list, const Tile &like) {
  if (segments.empty())
    return;
  int end = 0;
  for (const Segment &segment : segments)
    end = std::max(end, segment.queryEnd);
  if (const int begin = segments.front().queryBegin; end - begin <= queriesPerTile) {
    TileRuns runs(list.beginTile(segments.size()));
    for (const Segment &segment : segments)
      runs.add(segment, segment.queryBegin, segment.queryEnd);
    list.endTile(begin, end, runs.count(), runs.tokens(), like);
    return;
  }
  bounds_.clear();
  for (int at = segments.front().queryBegin; at < end; at += queriesPerTile)
    bounds_.push_back(at);
  bounds_.push_back(end);
  tile(segments, bounds_, list, like);
}

} // namespace deft::plan
