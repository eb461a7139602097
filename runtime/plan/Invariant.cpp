#include "runtime/plan/Partitions.h"
#include "runtime/plan/Reach.h"
#include "runtime/plan/Slope.h"

namespace deft::plan {

void makeInvariantTiles(const TreeView &view, const Reach &reach, int queriesPerTile, int chunkTokens,
                        PartitionScratch &scratch, TileList &list) {
  Tile like;
  like.chunkTokens = chunkTokens;
  like.isEven = false;
  const auto tile = [&](const Segment &segment) {
    scratch.tiler.tile(std::span(&segment, 1), queriesPerTile, list, like);
  };
  // Each reader reads a chunk completely if the mask shows it any of it, else not at all. The chunks of a
  // query's partials may depend only on the query, because the rounding of merges depends on their number.
  // With the bound `path`, and with ranks, the view does not tell the positions of queries, only where their
  // visible tokens of a node end.
  const bool mayHide = !reach.isAll() && !reach.hasRisingEnd() && !view.hasHidden;
  const auto add = [&](Segment chunk) {
    if (!mayHide)
      return tile(chunk);
    const int position = view.places[static_cast<std::size_t>(chunk.place)].position + chunk.begin;
    const auto sees = [&](int query) {
      return reach.firstFrom(view.queryPos[static_cast<std::size_t>(query)], position) <
             position + chunk.tokens;
    };
    for (int query = chunk.queryBegin, end = chunk.queryEnd; query < end; query = chunk.queryEnd + 1) {
      while (query < end && !sees(query))
        ++query;
      chunk.queryBegin = chunk.queryEnd = query;
      while (chunk.queryEnd < end && sees(chunk.queryEnd))
        ++chunk.queryEnd;
      if (chunk.queryBegin < chunk.queryEnd)
        tile(chunk);
    }
  };
  for (int p = 0; p < view.placeCount(); ++p) {
    const Place &place = view.places[static_cast<std::size_t>(p)];
    int whole = 0; // tokens of the node before the current chunk
    const auto cut = [&](const Segment &segment, int nextBegin) {
      const int end = segment.begin + segment.tokens;
      // Full chunks that end in this segment: its first reader and all later ones see them to the end.
      for (; end - whole >= chunkTokens; whole += chunkTokens)
        add({p, whole, chunkTokens, segment.queryBegin, segment.queryEnd});
      if (end == whole || nextBegin == segment.queryBegin) // no query ends before a causal stretch
        return;
      // The queries that end here share the rest of their last chunk with no other query.
      add({p, whole, end - whole, segment.queryBegin, nextBegin});
    };
    for (int s = place.segmentBegin; s < place.segmentEnd; ++s) {
      const Segment &segment = view.segments[static_cast<std::size_t>(s)];
      const bool isLast = s + 1 == place.segmentEnd;
      const int nextBegin =
          isLast ? segment.queryEnd : view.segments[static_cast<std::size_t>(s) + 1].queryBegin;
      // How the queries of a causal stretch are divided into tiles depends on their number, so each of their
      // tokens ends a tile of its own.
      Segment rest = segment;
      for (; rest.slope != 0 && rest.tokens > 1; dropFirst(rest, 1))
        cut({p, rest.begin, 1, rest.queryBegin, rest.queryEnd}, rest.queryBegin + 1);
      rest.slope = 0;
      cut(rest, nextBegin);
    }
  }
}

} // namespace deft::plan
