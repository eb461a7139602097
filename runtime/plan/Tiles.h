#pragma once

#include "runtime/plan/TreeView.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

/// Between a partition and the work list: what is read together, not yet cut into chunks.
namespace deft::plan {

/// Neighbouring queries, at most as many as a phase holds, and tokens that any of them sees.
struct Tile {
  int queryBegin = 0; ///< plan order
  int queryCount = 0;
  int runBegin = 0; ///< into TileList::runs; of a path: the place where it ends
  int runCount = 0;
  int tokens = 0;
  int chunkTokens = 0; ///< most tokens of its items; 0: as the plan's
  bool isEven = true;  ///< cut into equal chunks; else into full ones from the start, and the rest
  /// A path that all its queries see, or the end of it: `runCount` nodes with tokens, upwards from the last
  /// that they see, are its runs. None is in the list, and the first `sharedRuns` are of the same nodes as
  /// those of the path before.
  bool isPath = false;
  int sharedRuns = 0;
};

/// What a partition makes. Together the tiles cover every (query, token on its path) once; a query may be in
/// many tiles, which stand in the order of its path, or (seeing nothing) in none. The runs of a tile are
/// segments, clipped to its queries, in preorder: their queryBegin never falls.
class TileList {
public:
  /// Above that isFull() says so, makers may stop, and the plan is an error.
  static constexpr std::size_t kMostRuns = std::size_t{1} << 26;

  std::vector<Tile> tiles;
  UnfilledVector<Segment> runs;

  void clear();

  /// Room for the runs of a tile, at most so many; endTile() follows.
  Segment *beginTile(std::size_t most) {
    begun_ = runs.size();
    runs.resize(begun_ + most);
    return runs.data() + begun_;
  }
  /// The tile begun is of the queries [queryBegin, queryEnd), has that many runs from its room's front on,
  /// and is none if these are none. `like` gives the chunk.
  void endTile(int queryBegin, int queryEnd, int runCount, int tokens, const Tile &like) {
    runs.resize(begun_ + static_cast<std::size_t>(runCount));
    if (runCount > 0)
      tiles.emplace_back(queryBegin, queryEnd - queryBegin, static_cast<int>(begun_), runCount, tokens,
                         like.chunkTokens, like.isEven);
  }
  /// A tile of one segment, for its readers.
  void addTile(const Segment &segment, const Tile &like = {}) {
    tiles.emplace_back(segment.queryBegin, segment.queryEnd - segment.queryBegin,
                       static_cast<int>(runs.size()), 1, segment.tokens, like.chunkTokens, like.isEven);
    runs.push_back(segment);
  }
  /// A tile of the runs from `first` on, for all that see any of them; none of none.
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
  /// What queries that see the same of `place` see down to there, or the end of it.
  void addPath(int queryBegin, int queryCount, int place, int runCount, int sharedRuns, int tokens) {
    tiles.emplace_back(queryBegin, queryCount, place, runCount, tokens, 0, true, true, sharedRuns);
    pathRuns_ += static_cast<std::size_t>(runCount);
  }
  std::size_t runCount() const { return runs.size() + pathRuns_; } ///< of all tiles
  bool isFull() const { return runCount() > kMostRuns; }

private:
  std::size_t begun_ = 0;    ///< where the runs of the tile at hand begin
  std::size_t pathRuns_ = 0; ///< of all paths
};

/// Row tiles over segments that lie in the order of TreeView::segments. Kept between plans for its memory.
class RowTiler {
public:
  /// One tile for each pair of neighbours in `bounds` (ascending, plan order), over all that its queries see
  /// of the segments. Takes time for the segments and the runs made.
  void tile(std::span<const Segment> segments, std::span<const int> bounds, TileList &list,
            const Tile &like = {});
  /// Tiles of `queriesPerTile` queries, the last one of what is left, over all readers of the segments.
  void tile(std::span<const Segment> segments, int queriesPerTile, TileList &list, const Tile &like = {});
  /// Tiles of `queriesPerTile` queries over what is seen of one node.
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
  std::vector<Segment> open_; ///< room for segments begun that the next tile sees, too
  std::vector<int> bounds_;
};

} // namespace deft::plan
