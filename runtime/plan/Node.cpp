#include "runtime/plan/Partitions.h"

namespace deft::plan {

void makeNodeTiles(const TreeView &view, int queriesPerTile, const Tile &like, PartitionScratch &scratch,
                   TileList &list) {
  const std::span<const Segment> segments(view.segments);
  for (const Place &place : view.places)
    if (place.segmentBegin < place.segmentEnd)
      scratch.tiler.tile(segments.subspan(static_cast<std::size_t>(place.segmentBegin),
                                          static_cast<std::size_t>(place.segmentEnd - place.segmentBegin)),
                         queriesPerTile, list, like);
}

} // namespace deft::plan
