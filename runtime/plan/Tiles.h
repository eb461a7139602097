#pragma once

#include "runtime/plan/TreeView.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

/// Tiles stand between a partition and the work list: tokens that are read together, not yet cut into chunks.
namespace deft::plan {

/// Neighbouring queries, at most as many as a phase holds, and all tokens that any of them sees.
struct Tile {
  int queryBegin = 0; ///< plan order
  int queryCount = 0;
  int runBegin = 0; ///< into TileList::runs; for a path: the place where it ends
  int runCount = 0;
  int tokens = 0;
  int chunkTokens = 0; ///< most tokens of its items; 0: the plan's
  bool isEven = true;  ///< cut into equal chunks; false: full chunks from the start, then the rest
  /// A path that all its queries see, or the end of one. Its runs are the last `runCount` nodes with tokens
  /// on the path; the list does not store them. The first `sharedRuns` runs are the same nodes as in the path
  /// before.
  bool isPath = false;
  int sharedRuns = 0;
};

/// The result of a partition. The tiles cover every (query, token on its path) pair exactly once. A query may
/// be in many tiles, in the order of its path, or in none if it sees nothing. The runs of a tile are
/// segments, clipped to its queries, in preorder, so their queryBegin never decreases.
class TileList {
public:
  /// The limit of isFull(). A partition may stop there: the plan is then an error.
  static constexpr std::size_t kMostRuns = std::size_t{1} << 26;

  std::vector<Tile> tiles;
  UnfilledVector<Segment> runs;

  void clear();

  /// Reserves room for the runs of a tile, at most `most`. A call of endTile() must follow.
  Segment *beginTile(std::size_t most) {
    begun_ = runs.size();
    runs.resize(begun_ + most);
    return runs.data() + begun_;
  }
  /// Ends the tile: it has the queries [queryBegin, queryEnd) and the first `runCount` runs of the room.
  /// Without runs there is no tile. `like` sets the chunk.
  void endTile(int queryBegin, int queryEnd, int runCount, int tokens, const Tile &like) {
    runs.resize(begun_ + static_cast<std::size_t>(runCount));
    if (runCount > 0)
      tiles.emplace_back(queryBegin, queryEnd - queryBegin, static_cast<int>(begun_), runCount, tokens,
                         like.chunkTokens, like.isEven);
  }
  /// Adds a tile of one segment, for all its readers.
  void addTile(const Segment &segment, const Tile &like = {}) {
    tiles.emplace_back(segment.queryBegin, segment.queryEnd - segment.queryBegin,
                       static_cast<int>(runs.size()), 1, segment.tokens, like.chunkTokens, like.isEven);
    runs.push_back(segment);
  }
  /// Adds a tile of the runs from `first` on, for all queries that see any of them. No runs, no tile.
  void addTile(std::size_t first) {
    const std::size_t end = runs.size();
    if (first == end)
      return;
    int tokens = 0, queryEnd = 0;
    for (std::size_t r = first; r < end; ++r) {
      tokens += runs[r].tokens;
      queryEnd = std::max(queryEnd, runs[r].queryEnd);
    }
    const int queryBegin = runs[first].queryBegin;
    tiles.emplace_back(queryBegin, queryEnd - queryBegin, static_cast<int>(first),
                       static_cast<int>(end - first), tokens);
  }
  /// Adds the path down to `place`, or the end of it, for queries that see the same tokens of `place`.
  void addPath(int queryBegin, int queryCount, int place, int runCount, int sharedRuns, int tokens) {
    tiles.emplace_back(queryBegin, queryCount, place, runCount, tokens, 0, true, true, sharedRuns);
    pathRuns_ += static_cast<std::size_t>(runCount);
  }
  std::size_t runCount() const { return runs.size() + pathRuns_; } ///< of all tiles
  bool isFull() const { return runCount() > kMostRuns; }

private:
  std::size_t begun_ = 0;    ///< where the runs of the current tile begin
  std::size_t pathRuns_ = 0; ///< of all paths
};

/// Makes row tiles of segments in the order of TreeView::segments. Keep the object to reuse its memory.
class RowTiler {
public:
  /// Adds one tile for each pair of neighbours in `bounds` (ascending, plan order), with all tokens of the
  /// segments that its queries see. Time is linear in the segments and the new runs.
  void tile(std::span<const Segment> segments, std::span<const int> bounds, TileList &list,
            const Tile &like = {});
  /// Adds tiles of `queriesPerTile` queries for all readers of the segments; the last tile has the rest.
  void tile(std::span<const Segment> segments, int queriesPerTile, TileList &list, const Tile &like = {});
  /// Adds tiles of `queriesPerTile` queries for the visible tokens of one node.
  void tileNode(const TreeView &view, const Place &place, int queriesPerTile, TileList &list,
                const Tile &like) {
    const Segment *const first = view.segments.data() + place.segmentBegin;
    const int count = place.segmentEnd - place.segmentBegin;
    if (count == 1 && first->queryEnd - first->queryBegin <= queriesPerTile)
      list.addTile(*first, like);
    else if (count > 0)
      tile(std::span(first, static_cast<std::size_t>(count)), queriesPerTile, list, like);
  }

private:
  std::vector<Segment> open_; ///< segments that the next tile sees as well
  std::vector<int> bounds_;
};

} // namespace deft::plan
