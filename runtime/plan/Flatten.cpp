#include "runtime/plan/Items.h"
#include "runtime/plan/Partitions.h"
#include "runtime/plan/Slope.h"

#include <algorithm>

namespace deft::plan {

namespace {

/// DeFT's own choice. Where that is more items than this for each block, chunks are longer.
constexpr int kFlattenChunk = 128;
constexpr long long kFlattenWaves = 16;

} // namespace

int flattenChunk(const TreeView &view, int kvHeads, int blocks) {
  const long long share = view.readTokens * kvHeads / (kFlattenWaves * std::max(blocks, 1));
  return std::max(kFlattenChunk, static_cast<int>(share / kChunkStep) * kChunkStep);
}

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
