#include "runtime/plan/Partitions.h"
#include "runtime/plan/Reach.h"

#include <algorithm>

namespace deft::plan {

void makeInvariantTiles(const TreeView &view, const Reach &reach, int queriesPerTile, int chunkTokens,
                        PartitionScratch &scratch, TileList &list) {
  Tile like;
  like.chunkTokens = chunkTokens;
  like.isEven = false;
  // Whole chunks alone are left out, as far as a mask hides them from all: where chunks begin depends on no
  // query, and one that shows a query nothing changes no bit of its result.
  const bool mayHide = !reach.isAll() && !reach.hasRisingEnd();
  const auto isHidden = [&](const Segment &segment) {
    const auto first = view.queryPos.begin();
    const int least = *std::min_element(first + segment.queryBegin, first + segment.queryEnd);
    const int position = view.places[static_cast<std::size_t>(segment.place)].position + segment.begin;
    return reach.firstFrom(least, position) >= position + segment.tokens;
  };
  const auto add = [&](const Segment &segment) {
    if (mayHide && isHidden(segment))
      return;
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
