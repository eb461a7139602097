#include "runtime/plan/Items.h"
#include "runtime/plan/Partitions.h"

#include <algorithm>

namespace deft::plan {

void makeCascadeTiles(const TreeView &view, int queriesPerTile, int chunkTokens, const VariantFacts &facts,
                      const config::CostCoefficients &cost, int blocks, PartitionScratch &scratch,
                      TileList &list) {
  // Places by depth, in preorder within a level: a counting sort.
  int levels = 0;
  for (const Place &place : view.places)
    levels = std::max(levels, place.depth + 1);
  std::vector<int> &next = scratch.counts;
  next.assign(static_cast<std::size_t>(levels) + 1, 0);
  for (const Place &place : view.places)
    ++next[static_cast<std::size_t>(place.depth) + 1];
  for (int level = 0; level < levels; ++level)
    next[static_cast<std::size_t>(level) + 1] += next[static_cast<std::size_t>(level)];
  std::vector<int> &order = scratch.order;
  order.resize(view.places.size());
  for (int place = 0; place < view.placeCount(); ++place)
    order[static_cast<std::size_t>(next[static_cast<std::size_t>(view.places[place].depth)]++)] = place;

  for (int level = 0, i = 0; level < levels; ++level) {
    const std::size_t firstTile = list.tiles.size();
    for (; i < next[static_cast<std::size_t>(level)]; ++i)
      scratch.tiler.tileNode(view, view.places[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])],
                             queriesPerTile, list, {});
    if (chunkTokens > 0 || list.tiles.size() == firstTile)
      continue;
    const std::span<Tile> tiles = std::span(list.tiles).subspan(firstTile);
    const int chunk = chooseChunkTokens(tiles, facts, cost, blocks);
    for (Tile &tile : tiles)
      tile.chunkTokens = chunk;
  }
}

} // namespace deft::plan
