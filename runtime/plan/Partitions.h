#pragma once

#include "runtime/plan/Tiles.h"
#include "runtime/plan/VariantFacts.h"

#include <cstdint>
#include <span>
#include <vector>

/// The ways to group tokens with queries. Each appends to a list whose memory is kept between plans.
/// `queriesPerTile` is what the widest phase holds: more readers than that make several row tiles.
namespace deft::plan {

/// Memory that partitions keep between their calls.
struct PartitionScratch {
  RowTiler tiler;
  std::vector<Segment> segments;
  std::vector<int> above, order, counts, bounds;

  struct CheapestTiles { ///< one after the other, up to a query
    double us;
    int lastBegin; ///< where its last tile begins
  };
  std::vector<CheapestTiles> cheapest;             ///< by the query at which they end
  std::vector<int> added, barriers, noMore, least; ///< see UnionCuts
};

/// `query` (Flash-Decoding, Radix attention): one tile a query, its whole path.
void makeQueryTiles(const TreeView &view, PartitionScratch &scratch, TileList &list);

/// `node` and `node_chunk` (DeFT): a tile holds tokens of one node, for its readers. `like` says how they are
/// cut: `node` into chunks counted from the node's start (or not at all), `node_chunk` evenly.
void makeNodeTiles(const TreeView &view, int queriesPerTile, const Tile &like, PartitionScratch &scratch,
                   TileList &list);

/// `flatten` (DeFT): the tokens that are read, depth-first, in chunks of `chunkTokens`, whatever nodes they
/// belong to; the last one has what is left.
void makeFlattenTiles(const TreeView &view, int queriesPerTile, int chunkTokens, PartitionScratch &scratch,
                      TileList &list);

/// `cascade` (composable formats): level after level, each of them planned as if it had the machine for
/// itself: without a chunk of the config, a level's chunks fill `blocks` with its own tokens.
void makeCascadeTiles(const TreeView &view, int queriesPerTile, int chunkTokens, const VariantFacts &facts,
                      int blocks, PartitionScratch &scratch, TileList &list);

/// What a tile costs by its size: of one phase, how many queries it holds, and the time of a token in it.
struct TilePrice {
  int queries = 1;
  double tokenUs = 1;
};

/// `union`: neighbours in plan order over the union of their paths, in tiles of any of the sizes given
/// (ascending), chosen by cost: wide where many share much, narrow elsewhere. `tileUs` is the price of one
/// more tile. Queries that share next to nothing are never in one tile.
void makeUnionTiles(const TreeView &view, std::span<const TilePrice> sizes, double tileUs,
                    PartitionScratch &scratch, TileList &list);

/// Partition `node` such that nobody's tiles depend on other readers: chunks of exactly `chunkTokens` from
/// the node's start, and where a query ends inside a chunk, a tile of its own for those who end there. The
/// view is of the whole tree, whatever a mask hides.
void makeInvariantTiles(const TreeView &view, const Reach &reach, int queriesPerTile, int chunkTokens,
                        PartitionScratch &scratch, TileList &list);

} // namespace deft::plan
