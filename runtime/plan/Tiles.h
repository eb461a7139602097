#pragma once

#include "runtime/plan/TreeView.h"

#include <span>
#include <vector>

/// Between a partition and the work list: what is read together, not yet cut into chunks.
namespace deft::plan {

/// Neighbouring queries, at most as many as a phase holds, and tokens that any of them sees.
struct Tile {
  int queryBegin = 0; ///< plan order
  int queryCount = 0;
  int runBegin = 0; ///< into TileList::runs
  int runCount = 0;
  int tokens = 0;
  int chunkTokens = 0; ///< most tokens of its items; 0: as the plan's
  bool isEven = true;  ///< cut into equal chunks; else into full ones from the start, and the rest
};

/// What a partition makes. Together the tiles cover every (query, token on its path) once; a query may be in
/// many tiles, which stand in the order of its path, or (seeing nothing) in none. The runs of a tile are
/// segments, clipped to its queries, in preorder: their queryBegin never falls.
class TileList {
public:
  /// More is refused: the list stops growing, isFull() says so, and the plan is an error.
  static constexpr std::size_t kMostRuns = std::size_t{1} << 26;

  std::vector<Tile> tiles;
  std::vector<Segment> runs;

  void clear();
  /// The tile of the queries [queryBegin, queryEnd); addRun and endTile follow. `like` gives the chunk.
  void beginTile(int queryBegin, int queryEnd, const Tile &like = {});
  /// Adds what the tile's queries see of the segment; one that goes on where the last one ended, for the same
  /// queries, becomes one run with it.
  void addRun(const Segment &segment);
  void endTile(); ///< drops the tile if it has no tokens
  bool isFull() const { return isFull_; }

private:
  bool isFull_ = false;
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

private:
  std::vector<Segment> open_; ///< segments begun that the next tile sees, too
  std::vector<int> bounds_;
};

} // namespace deft::plan
