#pragma once

#include "runtime/plan/Tiles.h"

/// The ways to group tokens with queries. Each appends to a list whose memory is kept between plans.
namespace deft::plan {

/// Memory that partitions need between their calls.
struct PartitionScratch {
  RowTiler tiler;
  std::vector<Segment> segments;
  std::vector<int> bounds;
  std::vector<int> shared;
};

/// `union`: tiles of up to `queriesPerTile` neighbours in plan order, each over the union of its queries'
/// paths. A tile ends early where the next query shares next to nothing with it.
void makeUnionTiles(const TreeView &view, int queriesPerTile, PartitionScratch &scratch, TileList &list);

} // namespace deft::plan
