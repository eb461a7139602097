#pragma once

#include "deft/abi.h"
#include "deft/formed_scores.cuh"

/// What a warp knows of its 16 rows and of the tokens before it, and what follows from both: which
/// tokens the rows see, and the final scores. A thread holds rows lane / 4 and lane / 4 + 8 of the
/// accumulator tiles of mma.sync and wgmma alike, so both kernel families share this file.
namespace deft {

/// Of some tokens, all inclusive.
struct TokenBounds {
  int kvLo, kvHi; ///< position
  int depthLo, depthHi;
};

template <class Config, class Variant> class WarpRows {
  using Element = typename Config::Element;
  using Params = typename Variant::Params;
  using Form = FormOf<Variant>;
  using Forms = FormedScores<Config, Variant>;

public:
  /// Whether hooks want to know of the queries: setQueries or loadQueryFacts is to be called then.
  static constexpr bool kNeedsRow = Variant::kHasMask || Variant::kHasScore;
  /// Whether what they say of one differs from query to query: not where there is one cap for all, and no
  /// more.
  static constexpr bool kNeedsQuery =
      Variant::kHasMask || (Variant::kHasScore && !(Form::kHasOneCap && !Form::kIsSloped));
  /// Whether they want to know of tokens, positions and depths.
  static constexpr bool kNeedsToken =
      Variant::kHasMask || (Variant::kHasScore && (Form::kIsSloped || !Form::kIsKnown));
  static constexpr bool kFoldScale = Forms::kFoldScale;
  /// From the scores that `score` leaves to base 2.
  static constexpr float kUnit = kFoldScale ? Variant::kScale * kLog2e : kLog2e;
  /// Whether scoreRising is of use: where scores are products with a slope, and only their differences count.
  static constexpr bool kRises = kFoldScale && Variant::kHasScore;
  static constexpr bool kCapsLate = Forms::kCapsLate;

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
  }

  /// Of this thread's two rows, clamped: q_pos and the caller's index.
  __device__ __forceinline__ void setQueries(const int (&qPos)[2], const int (&query)[2]) {
    int head[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      head[r] = headOf(clamped(row(r)));
      hookRow_[r] = Variant::row(params_, qPos[r], head[r], kvHead_, query[r]);
    }
    if constexpr (Variant::kHasScore)
      forms_.set(params_, hookRow_, qPos, kvHead_);
    if constexpr (Variant::kHasMask) {
      bounds_.qLo = __reduce_min_sync(~0u, min(qPos[0], qPos[1]));
      bounds_.qHi = __reduce_max_sync(~0u, max(qPos[0], qPos[1]));
      if constexpr (Variant::kReadsQuery) {
        bounds_.queryLo = __reduce_min_sync(~0u, min(query[0], query[1]));
        bounds_.queryHi = __reduce_max_sync(~0u, max(query[0], query[1]));
      }
      bounds_.headLo = __reduce_min_sync(~0u, min(head[0], head[1]));
      bounds_.headHi = __reduce_max_sync(~0u, max(head[0], head[1]));
      bounds_.kvHead = kvHead_;
    }
  }

  /// The same from global memory, where nobody has brought them nearer.
  __device__ __forceinline__ void loadQueryFacts() {
    if constexpr (kNeedsRow) {
      int qPos[2], query[2];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        qPos[r] = args_.queryPos[queryBegin_ + clamped(row(r)) / Config::kRatio];
        query[r] = callerIndex(clamped(row(r)));
      }
      setQueries(qPos, query);
    }
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
    if constexpr (Variant::kHasMask) {
      bounds.kvLo = __reduce_min_sync(~0u, tokens.position[token]);
      bounds.kvHi = __reduce_max_sync(~0u, tokens.position[token]);
      if constexpr (Variant::kReadsDepth) {
        bounds.depthLo = __reduce_min_sync(~0u, tokens.depth[token]);
        bounds.depthHi = __reduce_max_sync(~0u, tokens.depth[token]);
      }
    }
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

  /// From products to final scores, but for masks, for kGroups groups of 16 tokens from the one given.
  template <int kGroups>
  __device__ __forceinline__ void score(const TokenRecords &tokens, int group,
                                        float (&s)[2 * kGroups][4]) const {
    if constexpr (Form::kIsCapped)
      forms_.cap(s); // knows of the scale
    else if constexpr (!kFoldScale)
      scale(s);
    if constexpr (Form::kIsSloped)
      forms_.addSlopes(tokens, group * 16 + lane_ % 4 * 2, s);
    if constexpr (!Form::kIsKnown)
      callHook(tokens, group, s);
  }

  /// What is done about scores as their form says, where kCapsLate.
  __device__ __forceinline__ const Forms &forms() const { return forms_; }

  /// `score` for a whole tile whose positions rise by one from token to token, where kRises allows it;
  /// `common` is to be added to all scores of a row.
  template <int kTiles>
  __device__ __forceinline__ void scoreRising(const TokenRecords &tokens, float (&s)[kTiles][4],
                                              float (&common)[2]) const {
    forms_.addRising(tokens.position[0] + lane_ % 4 * 2, s, common);
  }

  /// Whether the query of this thread's row half `r` is one of `queries`.
  __device__ __forceinline__ bool isAmong(int r, unsigned queries) const {
    const unsigned first = queries & 0xffff,
                   count = (queries >> 16) - first; // of nobody: as many as are below 0
    return queryOfRow_[r] - first < count;
  }

  /// -inf for what the rows do not see.
  __device__ __forceinline__ void hide(const TokenRecords &tokens, int group, float (&low)[4],
                                       float (&high)[4]) const {
    if constexpr (Config::kHeadDim != 80) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float (&s)[4] = half == 0 ? low : high;
        const int token = group * 16 + half * 8 + lane_ % 4 * 2; // and the next
        const Pair pair(tokens, token);
#pragma unroll
        for (int c = 0; c < 4; ++c)
          hide(pair, c, s[c]);
      }
    } else { // the other order: in the first one ptxas spills with 80 columns, in this one with others
      const int token = group * 16 + lane_ % 4 * 2;
      const Pair ofLow(tokens, token), ofHigh(tokens, token + 8);
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        hide(ofLow, c, low[c]);
        hide(ofHigh, c, high[c]);
      }
    }
  }

  /// The same of tokens all of which are seen by `viewers` and by nobody else.
  template <int kTiles>
  __device__ __forceinline__ void hideAll(unsigned viewers, float (&s)[kTiles][4]) const {
    forEachScore(s, [&](float &x, int r, int) { x = isAmong(r, viewers) ? x : -kInfinity; });
  }

private:
  /// What the records say of a token and the next. All of it is read at once: a load that waits for the
  /// answer to another question would be a branch for each score.
  struct Pair {
    uint2 visible;
    int2 position{}, depth{};

    __device__ __forceinline__ Pair(const TokenRecords &tokens, int token)
        : visible(*reinterpret_cast<const uint2 *>(tokens.visible + token)) {
      if constexpr (Variant::kHasMask) {
        position = *reinterpret_cast<const int2 *>(tokens.position + token);
        depth = *reinterpret_cast<const int2 *>(tokens.depth + token);
      }
    }
  };

  /// Accumulator c of a pair of tokens.
  __device__ __forceinline__ void hide(const Pair &pair, int c, float &s) const {
    bool isVisible = isAmong(c / 2, c % 2 == 0 ? pair.visible.x : pair.visible.y);
    if constexpr (Variant::kHasMask)
      isVisible &= Variant::mask(params_, hookRow_[c / 2], c % 2 == 0 ? pair.position.x : pair.position.y,
                                 c % 2 == 0 ? pair.depth.x : pair.depth.y, kvHead_);
    s = isVisible ? s : -kInfinity;
  }

  template <int kTiles> static __device__ __forceinline__ void scale(float (&s)[kTiles][4]) {
    forEachScore(s, [](float &x, int, int) { x *= Variant::kScale; });
  }

  template <int kTiles>
  __device__ __forceinline__ void callHook(const TokenRecords &tokens, int group,
                                           float (&s)[kTiles][4]) const {
    const int first = group * 16 + lane_ % 4 * 2;
    forEachScore(s, [&](float &x, int r, int token) {
      x = Variant::score(params_, hookRow_[r], x, tokens.position[first + token], tokens.depth[first + token],
                         kvHead_);
    });
  }

  const abi::AttendArgs &args_;
  const Params &params_;
  const int queryBegin_, rows_, kvHead_, firstRow_, lane_;
  int queryLo_, queryEnd_; ///< of the warp's rows, relative to the item
  int queryOfRow_[2];
  typename Variant::Row hookRow_[2];
  TileBounds bounds_;
  Forms forms_;
};

} // namespace deft
