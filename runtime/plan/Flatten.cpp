#include "runtime/plan/Partitions.h"
#include "runtime/plan/Slope.h"

#include <algorithm>

namespace deft::plan {

void makeFlattenTiles(const TreeView &view, int queriesPerTile, int chunkTokens, PartitionScratch &scratch,
                      TileList &list) {
  Tile like;
  like.chunkTokens = chunkTokens; // a tile never has more tokens, so it becomes one item
  like.isEven = false;
  std::vector<Segment> &chunk = scratch.segments;
  chunk.clear();
  int room = chunkTokens;
  for (Segment segment : view.segments)
    while (segment.tokens > 0) {
      Segment part = segment;
      part.tokens = std::min(segment.tokens, room);
      chunk.push_back(part);
      dropFirst(segment, part.tokens);
      room -= part.tokens;
      if (room == 0) {
        scratch.tiler.tile(chunk, queriesPerTile, list, like);
        chunk.clear();
        room = chunkTokens;
      }
    }
  scratch.tiler.tile(chunk, queriesPerTile, list, like);
}

} // namespace deft::plan
