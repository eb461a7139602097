#pragma once

#include "runtime/plan/CostModel.h"
#include "runtime/plan/Items.h"
#include "runtime/plan/Lanes.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace deft::plan {

/// The cost model's price of a group (queries over tokens, cut into row tiles) for four lengths at a time.
/// This is the inner loop of `greedy`, so it is inline.
///
/// Counts are integers below 2^24 where rounding matters. So adding one half before truncation gives exact
/// quotients: (n + 1/2) / w is never close to an integer.
class GroupPrices {
public:
  void set(const CostModel &model, int chunkTokens);

  int width() const { return width_; } ///< queries of the widest tile
  float partialUs() const { return partial_; }
  /// The number of queries that must leave before a row tile becomes cheaper or is not needed.
  int fewer(int queries) const {
    return fewer_[static_cast<std::size_t>(queries - fullTiles(queries) * width_)];
  }
  /// Groups of at most this many tokens need one step of any tile and one chunk, and reading them again is
  /// cheaper than a partial.
  int shortTokens() const { return shortTokens_; }

  /// Bounds of the gain and the loss if one group reads the tokens of two.
  struct Bounds {
    float tokenUs; ///< per token that these queries read, averaged over many tokens
    float stepUs;  ///< almost one step for each row tile: the loss by whole steps
    float tiles;   ///< row tiles
  };
  Bounds bounds(int queries) const {
    if (queries <= width_) [[likely]]
      return bounds_[static_cast<std::size_t>(queries)];
    const int full = fullTiles(queries);
    const Bounds &wide = bounds_.back(), &narrow = bounds_[static_cast<std::size_t>(queries - full * width_)];
    const auto count = static_cast<float>(full);
    return {count * wide.tokenUs + narrow.tokenUs, count * wide.stepUs + narrow.stepUs, count + narrow.tiles};
  }
  /// The price of starting items for a group that takes in `tokens` more; and of the partials that one query
  /// may save that way.
  float startUs(int tokens) const { return item_ * (1 + static_cast<float>(tokens) * inverseChunk_); }
  float partialsUs(int tokens, bool mayBeWhole) const {
    return partial_ * ((mayBeWhole ? 2 : 1) + static_cast<float>(tokens) * inverseChunk_);
  }

  /// Costs of a group's readers that do not depend on its length.
  struct Readers {
    float wideSteps, narrowSteps, inverseNarrow, narrowSlack; ///< of full tiles, and of one for the rest
    float tiles, partials;
  };
  Readers readers(int queries) const {
    if (queries <= width_) [[likely]]
      return readers_[static_cast<std::size_t>(queries)];
    const int full = fullTiles(queries);
    const Width &narrow = narrowest(queries, full);
    return {wide_.stepUs * static_cast<float>(full),
            narrow.stepUs,
            narrow.inverseStep,
            narrow.slack,
            static_cast<float>(full) + narrow.tiles,
            partial_ * static_cast<float>(queries)};
  }

  /// Prices if the readers `r` read each of four lengths. If `isWhole` is set and one chunk holds all tokens,
  /// the rows are complete and need no partial.
  Float4 sameReaders(const Readers &r, Float4 tokens, Int4 isWhole) const {
    const Float4 chunks = chunksOf(tokens);
    const Chunking chunking = chunkingOf(tokens, chunks);
    Float4 steps = r.narrowSteps * stepsOf(chunking, splat(r.inverseNarrow), splat(r.narrowSlack));
    if (r.wideSteps > 0)
      steps += r.wideSteps * stepsOf(chunking, splat(wide_.inverseStep), splat(wide_.slack));
    const Float4 merged = select(isWhole & (chunks == splat(1.0F)), Float4{}, chunks * r.partials);
    return select(tokens > Float4{}, steps + r.tiles * (chunks * item_ + tokens * again_) + merged, Float4{});
  }

  /// Prices of four lengths, each with its own number of readers, at most `most`. No row is complete.
  Float4 otherReaders(int most, Float4 queries, Float4 tokens) const {
    const Float4 chunks = chunksOf(tokens);
    const Chunking chunking = chunkingOf(tokens, chunks);
    Float4 full{}, wideSteps{};
    Int4 rest = truncate(queries);
    if (most >= width_) {
      full = truncated((queries + splat(0.5F)) * inverseWidth_);
      rest = truncate(queries - full * static_cast<float>(width_));
      for (int k = 0; k < 4; ++k)
        rest[k] = std::clamp(rest[k], 0, width_); // beyond 2^23 queries, halves are rounded
      wideSteps = full * wide_.stepUs * stepsOf(chunking, splat(wide_.inverseStep), splat(wide_.slack));
    }
    Float4 narrow[4];
    for (int k = 0; k < 4; ++k)
      std::memcpy(&narrow[k], &widths_[static_cast<std::size_t>(rest[k])], sizeof narrow[k]);
    transpose(narrow);
    const auto &[stepUs, inverse, slack, tiles] = narrow;
    const Float4 total = wideSteps + stepUs * stepsOf(chunking, inverse, slack) +
                         (full + tiles) * (chunks * item_ + tokens * again_) + chunks * queries * partial_;
    return select(tokens > Float4{}, total, Float4{});
  }

private:
  struct Width { ///< by queries of a tile; four floats, because otherReaders reads them as one vector
    float stepUs = 0, inverseStep = 0, slack = 0, tiles = 0;
  };
  /// The tile width for the queries that do not fill a tile.
  const Width &narrowest(int queries, int full) const {
    return widths_[static_cast<std::size_t>(queries - full * width_)];
  }

  int fullTiles(int queries) const {
    return static_cast<int>((static_cast<float>(queries) + 0.5F) * inverseWidth_);
  }
  Float4 chunksOf(Float4 tokens) const {
    if (inverseChunk_ == 0)
      return splat(1.0F);
    const Float4 chunks = truncated(tokens * inverseChunk_ + 0.9999F);
    return select(chunks > splat(1.0F), chunks, splat(1.0F));
  }

  /// How a group's tokens are cut: equal chunks of a rounded size, and a last chunk for the rest.
  struct Chunking {
    Float4 more, chunk, rest; ///< chunks before the last, tokens of each, tokens of the last
  };
  Chunking chunkingOf(Float4 tokens, Float4 chunks) const {
    if (inverseChunk_ == 0)
      return {Float4{}, Float4{}, tokens};
    const Float4 more = chunks - 1.0F;
    constexpr float kStep = kChunkStep;
    const Float4 chunk = kStep * truncated(tokens / (chunks * kStep) + 0.999F);
    return {more, chunk, tokens - more * chunk};
  }
  Float4 stepsOf(const Chunking &chunking, Float4 inverse, Float4 slack) const {
    const Float4 last = truncated(chunking.rest * inverse + slack);
    return inverseChunk_ == 0 ? last : last + chunking.more * truncated(chunking.chunk * inverse + slack);
  }

  int width_ = 1, shortTokens_ = 0;
  float inverseWidth_ = 1;
  float item_ = 0, again_ = 0, partial_ = 0, inverseChunk_ = 0;
  Width wide_;
  std::vector<Width> widths_;
  std::vector<int> fewer_;     ///< by the queries that do not fill a tile
  std::vector<Bounds> bounds_; ///< by queries of one tile, as the next one
  std::vector<Readers> readers_;
};

} // namespace deft::plan
