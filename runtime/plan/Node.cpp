#include "runtime/plan/Partitions.h"

namespace deft::plan {

void makeNodeTiles(const TreeView &view, int queriesPerTile, const Tile &like, PartitionScratch &scratch,
                   TileList &list) {
  for (const Place &place : view.places)
    scratch.tiler.tileNode(view, place, queriesPerTile, list, like);
}

} // namespace deft::plan
