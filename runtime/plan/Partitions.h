#pragma once

#include "compiler/config/CostCoefficients.h"
#include "runtime/plan/Tiles.h"
#include "runtime/plan/VariantFacts.h"

#include <cstdint>
#include <span>
#include <vector>

/// The ways to group tokens with queries. Each function appends to a list that keeps its memory between
/// plans. `queriesPerTile` is the most queries of a tile: tokens with more readers are in several row tiles.
namespace deft::plan {

/// Memory that partitions keep between their calls.
struct PartitionScratch {
  RowTiler tiler;
  std::vector<Segment> segments;
  std::vector<int> above, order, counts, bounds;

  struct CheapestTiles { ///< the cheapest tiles for all queries before one
    double us;
    int lastBegin; ///< where its last tile begins
  };
  std::vector<CheapestTiles> cheapest;             ///< by the query where the tiles end
  std::vector<int> added, barriers, noMore, least; ///< see UnionCuts
};

/// `query` (Flash-Decoding, Radix attention): one tile for each query, with its whole path.
void makeQueryTiles(const TreeView &view, PartitionScratch &scratch, TileList &list);

/// `node` and `node_chunk` (DeFT): a tile holds tokens of one node, for its readers. `like` says how to cut
/// it: `node` into chunks from the node's start (or not at all), `node_chunk` into equal chunks.
void makeNodeTiles(const TreeView &view, int queriesPerTile, const Tile &like, PartitionScratch &scratch,
                   TileList &list);

/// `flatten` (DeFT): all tokens that are read, depth-first, in chunks of `chunkTokens` that may span nodes.
/// The last chunk has the rest.
void makeFlattenTiles(const TreeView &view, int queriesPerTile, int chunkTokens, PartitionScratch &scratch,
                      TileList &list);

/// The chunk of `flatten` if the config sets none: DeFT's own choice, longer in large trees.
int flattenChunk(const TreeView &view, int kvHeads, int blocks);

/// `cascade` (composable formats): one level after the other, each planned as if it had the machine to
/// itself. If the config sets no chunk, the chunks of each level fill all `blocks`.
void makeCascadeTiles(const TreeView &view, int queriesPerTile, int chunkTokens, const VariantFacts &facts,
                      const config::CostCoefficients &cost, int blocks, PartitionScratch &scratch,
                      TileList &list);

/// The price of a tile by its size: the queries that one phase holds, and the time of a token in such a tile.
struct TilePrice {
  int queries = 1;
  double tokenUs = 1;
};

/// `union`: neighbours in plan order read the union of their paths. The cost decides which of the given tile
/// sizes (ascending) they use: wide ones if many queries share much, else narrow ones. `tileUs` is the price
/// of one more tile. Queries that share almost nothing are never in one tile.
void makeUnionTiles(const TreeView &view, std::span<const TilePrice> sizes, double tileUs,
                    PartitionScratch &scratch, TileList &list);

/// Partition `node` with tiles that do not depend on other readers: chunks of exactly `chunkTokens` from the
/// node's start. Queries that end inside a chunk get a tile of their own for it. The view is of the whole
/// tree, even if a mask hides some.
void makeInvariantTiles(const TreeView &view, const Reach &reach, int queriesPerTile, int chunkTokens,
                        PartitionScratch &scratch, TileList &list);

} // namespace deft::plan
