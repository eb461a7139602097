#pragma once

#include "runtime/plan/Planner.h"

#include <vector>

/// Between a partition and the work list: what is read together, not yet cut into chunks.
namespace deft::plan {

/// Queries of one row tile and the runs that any of them sees. Offsets of runs are within the tile.
struct Tile {
  int queryBegin = 0; ///< plan order
  int queryCount = 0;
  int runBegin = 0; ///< into TileList::runs
  int runCount = 0;
  int tokens = 0;
};

struct TileList {
  std::vector<Tile> tiles; ///< cover every query once, in plan order
  std::vector<abi::Run> runs;
};

/// Partition `union`: tiles of up to `queriesPerTile` neighbours in plan order, each over the union of
/// its queries' paths. A tile ends early where the next query shares next to nothing with it.
TileList makeUnionTiles(const tree::KvTree &tree, const tree::QueryOrder &order, int queriesPerTile);

/// Most tokens that an item of each tile may hold so that the machine is filled with as few partials as
/// will do. A multiple of 16.
int chooseChunkTokens(const TileList &tiles, int kvHeads, int blocks);

/// Cuts the tiles into items of at most `chunkTokens`, narrows each item to the queries that see it, and
/// writes items, runs, partial slots and the merge map of `plan`; phases are left to sortIntoPhases.
support::Result<void> cutIntoItems(const TileList &tiles, int chunkTokens, Plan &plan);

/// Gives each item to a phase by its rows, heaviest first within a phase, ties in plan order.
void sortIntoPhases(const config::Config &config, int ratio, Plan &plan);

} // namespace deft::plan
