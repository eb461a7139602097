#include "runtime/plan/Partitions.h"

namespace deft::plan {

void makeInvariantTiles(const TreeView &view, int queriesPerTile, int chunkTokens, PartitionScratch &scratch,
                        TileList &list) {
  Tile like;
  like.chunkTokens = chunkTokens;
  like.isEven = false;
  const auto add = [&](const Segment &segment) {
    scratch.tiler.tile(std::span(&segment, 1), queriesPerTile, list, like);
  };
  for (int p = 0; p < view.placeCount(); ++p) {
    const Place &place = view.places[static_cast<std::size_t>(p)];
    int whole = 0; // tokens of the node before the chunk at hand
    for (int s = place.segmentBegin; s < place.segmentEnd; ++s) {
      const Segment &segment = view.segments[static_cast<std::size_t>(s)];
      const int end = segment.begin + segment.tokens;
      // Full chunks that end in this segment: everyone from its first reader on sees them to their end.
      for (; end - whole >= chunkTokens; whole += chunkTokens)
        add({p, whole, chunkTokens, segment.queryBegin, segment.queryEnd});
      if (end == whole)
        continue;
      // Those who end here share the rest of their last chunk with nobody else.
      const bool isLast = s + 1 == place.segmentEnd;
      add({p, whole, end - whole, segment.queryBegin,
           isLast ? segment.queryEnd : view.segments[static_cast<std::size_t>(s) + 1].queryBegin});
    }
  }
}

} // namespace deft::plan
