#pragma once

#include "deft/abi.h"
#include "deft/hook_math.cuh"
#include "deft/types.cuh"

/// What a warp knows of its 16 rows and of the tokens before it, and what follows from both: which
/// tokens the rows see, and the final scores. A thread holds rows lane / 4 and lane / 4 + 8 of the
/// accumulator tiles of mma.sync and wgmma alike, so both kernel families share this file.
namespace deft {

/// The records of a tile's tokens in shared memory, one array a field, so that a warp reads a field of
/// 16 tokens without conflicts.
struct TokenRecords {
  unsigned *visible; ///< queries of the item that see the token: first | end << 16, nobody beyond the item
  int *position;
  int *depth;

  static constexpr int kBytes = 12; ///< a token's

  __device__ __forceinline__ TokenRecords(void *base, int tokens)
      : visible(static_cast<unsigned *>(base)), position(static_cast<int *>(base) + tokens),
        depth(static_cast<int *>(base) + 2 * tokens) {}
};

/// Of some tokens, all inclusive.
struct TokenBounds {
  int kvLo, kvHi; ///< position
  int depthLo, depthHi;
};

template <class Config, class Variant> class WarpRows {
  using Element = typename Config::Element;
  using Params = typename Variant::Params;
  static constexpr bool kNeedsRow = Variant::kHasMask || Variant::kHasScore;

public:
  /// Without a score function the scale is folded into the exponent; it cannot be where it is not
  /// positive, because then the largest product is not the largest score.
  static constexpr bool kFoldScale = !Variant::kHasScore && !Variant::kSigmoid && Variant::kScale > 0.f;
  /// From the scores that `score` leaves to base 2.
  static constexpr float kUnit = kFoldScale ? Variant::kScale * kLog2e : kLog2e;

  enum Visibility { kHidden, kCut, kWhole };

  __device__ __forceinline__ WarpRows(const abi::AttendArgs &args, const Params &params,
                                      const abi::Item &item, int kvHead, int firstRow)
      : args_(args), params_(params), queryBegin_(item.queryBegin), rows_(item.queryCount * Config::kRatio),
        kvHead_(kvHead), firstRow_(firstRow), lane_(threadIdx.x % 32) {
    queryLo_ = clamped(firstRow) / Config::kRatio;
    queryEnd_ = clamped(firstRow + 15) / Config::kRatio + 1;
#pragma unroll
    for (int r = 0; r < 2; ++r)
      queryOfRow_[r] = clamped(row(r)) / Config::kRatio;
    if constexpr (kNeedsRow)
      loadHookFacts();
  }

  /// The item's row in half `r` of this thread's accumulators.
  __device__ __forceinline__ int row(int r) const { return firstRow_ + lane_ / 4 + 8 * r; }
  __device__ __forceinline__ bool isReal(int row) const { return row < rows_; }
  /// Rows beyond the item repeat its last one; they are computed and not written.
  __device__ __forceinline__ int clamped(int row) const { return row < rows_ ? row : rows_ - 1; }
  __device__ __forceinline__ int headOf(int row) const {
    return kvHead_ * Config::kRatio + row % Config::kRatio;
  }
  __device__ __forceinline__ int callerIndex(int row) const {
    return args_.callerIndex[queryBegin_ + row / Config::kRatio];
  }
  /// Index of a row in the caller's arrays of [query][query head].
  __device__ __forceinline__ long long place(int row) const {
    return static_cast<long long>(callerIndex(row)) * Config::kQueryHeads + headOf(row);
  }
  __device__ __forceinline__ const Element *queryRow(int row) const {
    return static_cast<const Element *>(args_.q) + place(row) * Config::kHeadDim;
  }

  /// The warp's queries as the a operand of m16k16 steps, straight from global memory.
  template <int kSteps> __device__ __forceinline__ void loadQueries(unsigned (&query)[kSteps][4]) const {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const Element *from = queryRow(clamped(row(r))) + lane_ % 4 * 2;
#pragma unroll
      for (int k = 0; k < kSteps; ++k) {
        query[k][r] = *reinterpret_cast<const unsigned *>(from + k * 16);
        query[k][r + 2] = *reinterpret_cast<const unsigned *>(from + k * 16 + 8);
      }
    }
  }

  /// What the rows see of 16 tokens; the same in all lanes.
  __device__ __forceinline__ Visibility visibility(const TokenRecords &tokens, int group) const {
    const int token = group * 16 + lane_ % 16;
    const int first = tokens.visible[token] & 0xffff, end = tokens.visible[token] >> 16;
    const bool any = __any_sync(~0u, first < queryEnd_ && end > queryLo_);
    const bool all = __all_sync(~0u, first <= queryLo_ && end >= queryEnd_);
    if (!any)
      return kHidden;
    TokenBounds bounds{};
    if constexpr (Variant::kHasMask)
      bounds = {__reduce_min_sync(~0u, tokens.position[token]),
                __reduce_max_sync(~0u, tokens.position[token]), __reduce_min_sync(~0u, tokens.depth[token]),
                __reduce_max_sync(~0u, tokens.depth[token])};
    return visibility(all, bounds);
  }

  /// Of tokens that some row sees by the tree alone, or `all` rows do.
  __device__ __forceinline__ Visibility visibility(bool all, const TokenBounds &tokens) const {
    if constexpr (Variant::kHasMask) {
      TileBounds bounds = bounds_;
      bounds.kvLo = tokens.kvLo;
      bounds.kvHi = tokens.kvHi;
      bounds.depthLo = tokens.depthLo;
      bounds.depthHi = tokens.depthHi;
      const TileVisibility tile = Variant::tile(params_, bounds);
      if (!tile.any)
        return kHidden;
      all = all && tile.all;
    }
    return all ? kWhole : kCut;
  }

  /// The warp's queries, relative to the item: [queryLo, queryEnd).
  __device__ __forceinline__ int queryLo() const { return queryLo_; }
  __device__ __forceinline__ int queryEnd() const { return queryEnd_; }

  /// From products to final scores for 16 tokens: scale, score function, and the masks where they cut.
  __device__ __forceinline__ void score(const TokenRecords &tokens, int group, bool cut, float (&low)[4],
                                        float (&high)[4]) const {
    if constexpr (!kFoldScale) {
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        low[c] *= Variant::kScale;
        high[c] *= Variant::kScale;
      }
    }
    if constexpr (Variant::kHasScore) {
      forEach(group, low, high, [&](float &s, int r, int token) {
        s = Variant::score(params_, hookRow_[r], s, tokens.position[token], tokens.depth[token], kvHead_);
      });
    }
    if (cut)
      hide(tokens, group, low, high);
  }

  /// -inf for what the rows do not see.
  __device__ __forceinline__ void hide(const TokenRecords &tokens, int group, float (&low)[4],
                                       float (&high)[4]) const {
    if constexpr (Config::kHeadDim != 80) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float (&s)[4] = half == 0 ? low : high;
        const int token = group * 16 + half * 8 + lane_ % 4 * 2; // and the next
        const uint2 visible = *reinterpret_cast<const uint2 *>(tokens.visible + token);
#pragma unroll
        for (int c = 0; c < 4; ++c)
          hide(tokens, token, visible, c, s[c]);
      }
    } else { // the other order: in the first one ptxas spills with 80 columns, in this one with others
      const int token = group * 16 + lane_ % 4 * 2;
      const uint2 ofLow = *reinterpret_cast<const uint2 *>(tokens.visible + token);
      const uint2 ofHigh = *reinterpret_cast<const uint2 *>(tokens.visible + token + 8);
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        hide(tokens, token, ofLow, c, low[c]);
        hide(tokens, token + 8, ofHigh, c, high[c]);
      }
    }
  }

private:
  /// Accumulator c of a group's tokens `token` and the next, which `visible` says of.
  __device__ __forceinline__ void hide(const TokenRecords &tokens, int token, uint2 visible, int c,
                                       float &s) const {
    const unsigned its = c % 2 == 0 ? visible.x : visible.y;
    const unsigned first = its & 0xffff, count = (its >> 16) - first; // of nobody: as many as are below 0
    bool isVisible = queryOfRow_[c / 2] - first < count;
    if constexpr (Variant::kHasMask)
      isVisible = isVisible && Variant::mask(params_, hookRow_[c / 2], tokens.position[token + c % 2],
                                             tokens.depth[token + c % 2], kvHead_);
    if (!isVisible)
      s = -kInfinity;
  }

  __device__ __forceinline__ void loadHookFacts() {
    int qPos[2], query[2], head[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int at = clamped(row(r));
      qPos[r] = args_.queryPos[queryBegin_ + at / Config::kRatio];
      query[r] = callerIndex(at);
      head[r] = headOf(at);
      hookRow_[r] = Variant::row(params_, qPos[r], head[r], kvHead_, query[r]);
    }
    if constexpr (Variant::kHasMask) {
      bounds_.qLo = __reduce_min_sync(~0u, min(qPos[0], qPos[1]));
      bounds_.qHi = __reduce_max_sync(~0u, max(qPos[0], qPos[1]));
      bounds_.queryLo = __reduce_min_sync(~0u, min(query[0], query[1]));
      bounds_.queryHi = __reduce_max_sync(~0u, max(query[0], query[1]));
      bounds_.headLo = __reduce_min_sync(~0u, min(head[0], head[1]));
      bounds_.headHi = __reduce_max_sync(~0u, max(head[0], head[1]));
      bounds_.kvHead = kvHead_;
    }
  }

  /// The scores of a group as f(score, half of the rows, token of the tile).
  template <class F>
  __device__ __forceinline__ void forEach(int group, float (&low)[4], float (&high)[4], F &&f) const {
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const int token = group * 16 + lane_ % 4 * 2 + c % 2;
      f(low[c], c / 2, token);
      f(high[c], c / 2, token + 8);
    }
  }

  const abi::AttendArgs &args_;
  const Params &params_;
  const int queryBegin_, rows_, kvHead_, firstRow_, lane_;
  int queryLo_, queryEnd_; ///< of the warp's rows, relative to the item
  int queryOfRow_[2];
  typename Variant::Row hookRow_[2];
  TileBounds bounds_;
};

} // namespace deft
