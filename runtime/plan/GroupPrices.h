#pragma once

#include "runtime/plan/CostModel.h"
#include "runtime/plan/Items.h"
#include "runtime/plan/Lanes.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace deft::plan {

/// Costs of a group of queries over some tokens, cut into row tiles, by the cost model, for four lengths at a
/// time: the inner loop of `greedy`, hence inline.
///
/// Counts are integers below 2^24 wherever rounding matters, so that half a unit of slack before truncation
/// gives exact quotients: (n + 1/2) / w is never near an integer.
class GroupPrices {
public:
  void set(const CostModel &model, int chunkTokens);

  int width() const { return width_; } ///< queries of the widest tile
  float partialUs() const { return partial_; }
  /// How many of so many queries must leave so that one row tile gets cheaper, or is one less.
  int fewer(int queries) const {
    return fewer_[static_cast<std::size_t>(queries - fullTiles(queries) * width_)];
  }
  /// Groups of no more tokens than this are one step of any tile and one chunk, and reading that much again
  /// is cheaper than a partial.
  int shortTokens() const { return shortTokens_; }

  /// What may be saved, and what is lost, by reading more tokens in one group than in two.
  struct Bounds {
    float tokenUs; ///< of a token that these queries read, in the mean over many tokens
    float stepUs;  ///< most of a step of each row tile: what whole steps may lose
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
  /// Of starting an item, for a group that takes so many more tokens in; of the partials that a query may
  /// save by it.
  float startUs(int tokens) const { return item_ * (1 + static_cast<float>(tokens) * inverseChunk_); }
  float partialsUs(int tokens, bool mayBeWhole) const {
    return partial_ * ((mayBeWhole ? 2 : 1) + static_cast<float>(tokens) * inverseChunk_);
  }

  /// What a group's readers cost, whatever the length.
  struct Readers {
    float wideSteps, narrowSteps, inverseNarrow, narrowSlack; ///< full row tiles, and one for the rest
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

  /// Prices of the readers `r` over each of four lengths. Where `isWhole` and one chunk holds all tokens, the
  /// rows are complete and there is no partial.
  Float4 sameReaders(const Readers &r, Float4 tokens, Int4 isWhole) const {
    const Float4 chunks = chunksOf(tokens);
    const Chunking chunking = chunkingOf(tokens, chunks);
    Float4 steps = r.narrowSteps * stepsOf(chunking, splat(r.inverseNarrow), splat(r.narrowSlack));
    if (r.wideSteps > 0)
      steps += r.wideSteps * stepsOf(chunking, splat(wide_.inverseStep), splat(wide_.slack));
    const Float4 merged = select(isWhole & (chunks == splat(1.0F)), Float4{}, chunks * r.partials);
    return select(tokens > Float4{}, steps + r.tiles * (chunks * item_ + tokens * again_) + merged, Float4{});
  }

  /// Prices of four lengths, each with readers of its own, `most` of them at most, and none of them complete.
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
  struct Width { ///< of a tile with so many queries; four floats, as otherReaders reads it
    float stepUs = 0, inverseStep = 0, slack = 0, tiles = 0;
  };
  /// The width of a tile for the queries that full tiles leave.
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

  /// A group's tokens as they are cut: into equal chunks, whose tokens are rounded up, and what is left.
  struct Chunking {
    Float4 more, chunk, rest; ///< chunks but for the last one, tokens of each of them and of the last one
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
  std::vector<int> fewer_;     ///< by queries that full tiles leave
  std::vector<Bounds> bounds_; ///< by queries of one tile, as are:
  std::vector<Readers> readers_;
};

} // namespace deft::plan
