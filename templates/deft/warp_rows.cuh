#pragma once

#include "deft/abi.h"
#include "deft/capped_score.cuh"
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

/// Of which form scores are (ScoreForm); without a score function they are scaled products.
template <class Variant, bool kHasScore = Variant::kHasScore> struct FormOf {
  static constexpr bool kIsCapped = false, kHasOneCap = false, kIsSloped = false, kIsKnown = true;
};
template <class Variant> struct FormOf<Variant, true> {
  static constexpr bool kIsCapped = Variant::kIsCapped, kHasOneCap = Variant::kHasOneCap,
                        kIsSloped = Variant::kIsSloped, kIsKnown = kIsCapped || kIsSloped;
};

template <class Config, class Variant> class WarpRows {
  using Element = typename Config::Element;
  using Params = typename Variant::Params;
  using Form = FormOf<Variant>;

public:
  /// Whether hooks want to know of the queries: setQueries or loadQueryFacts is to be called then.
  static constexpr bool kNeedsRow = Variant::kHasMask || Variant::kHasScore;
  /// Where scores are products with at most a slope, the scale is folded into the exponent; it cannot be
  /// where it is not positive, because then the largest product is not the largest score.
  static constexpr bool kFoldScale =
      Form::kIsKnown && !Form::kIsCapped && !Variant::kSigmoid && Variant::kScale > 0.f;
  /// From the scores that `score` leaves to base 2.
  static constexpr float kUnit = kFoldScale ? Variant::kScale * kLog2e : kLog2e;

  /// Whether scoreRising is of use: where scores are products with a slope, and only their differences count.
  static constexpr bool kRises = kFoldScale && Variant::kHasScore;

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
      setForms(qPos);
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
      cap(s); // knows of the scale
    else if constexpr (!kFoldScale)
      scale(s);
    if constexpr (Form::kIsSloped)
      addSlopes(tokens, group, s);
    if constexpr (!Form::kIsKnown)
      callHook(tokens, group, s);
  }

  /// The same for a whole tile whose positions rise by one from token to token, where kRises allows it; what
  /// is to be added to all scores of the thread's rows comes apart.
  template <int kTiles>
  __device__ __forceinline__ void scoreRising(const TokenRecords &tokens, float (&s)[kTiles][4],
                                              float (&common)[2]) const {
    const int first = tokens.position[0] + lane_ % 4 * 2;
#pragma unroll
    for (int r = 0; r < 2; ++r)
      common[r] = slope_[r] * static_cast<float>(first - origin_[r]);
    forEach(s, [&](float &x, int r, int token) { x = fmaf(slope_[r], static_cast<float>(token), x); });
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
    const unsigned its = c % 2 == 0 ? pair.visible.x : pair.visible.y;
    const unsigned first = its & 0xffff, count = (its >> 16) - first; // of nobody: as many as are below 0
    bool isVisible = queryOfRow_[c / 2] - first < count;
    if constexpr (Variant::kHasMask)
      isVisible &= Variant::mask(params_, hookRow_[c / 2], c % 2 == 0 ? pair.position.x : pair.position.y,
                                 c % 2 == 0 ? pair.depth.x : pair.depth.y, kvHead_);
    s = isVisible ? s : -kInfinity;
  }

  __device__ __forceinline__ void setForms(const int (&qPos)[2]) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      ScoreForm form{};
      if constexpr (Form::kIsKnown)
        form = Variant::form(params_, hookRow_[r], kvHead_);
      if constexpr (Form::kIsCapped) {
        const float rate = form.rate * Variant::kScale;
        capped_[r] = CappedScore(form.cap, rate);
        capped_[r].keep([&](float x) { return qPos[r] < -1 ? 0.f : x; }); // no position is, but who knows
        cap_[r] = form.cap;
        doubleRate_[r] = 2.f * kLog2e * rate;
      }
      if constexpr (Form::kIsSloped) {
        slope_[r] = kFoldScale ? form.slope / Variant::kScale : form.slope;
        origin_[r] = form.origin;
      }
    }
    if constexpr (Form::kIsSloped)
      fromOrigin_ = static_cast<float>(origin_[0] - origin_[1]);
  }

  static __device__ __forceinline__ int capOf(int r) { return Form::kHasOneCap ? 0 : r; }
  __device__ __forceinline__ const CappedScore &capped(int r) const { return capped_[capOf(r)]; }

  template <int kTiles> static __device__ __forceinline__ void scale(float (&s)[kTiles][4]) {
    forEach(s, [](float &x, int, int) { x *= Variant::kScale; });
  }

  template <int kTiles>
  __device__ __forceinline__ void callHook(const TokenRecords &tokens, int group,
                                           float (&s)[kTiles][4]) const {
    const int first = group * 16 + lane_ % 4 * 2;
    forEach(s, [&](float &x, int r, int token) {
      x = Variant::score(params_, hookRow_[r], x, tokens.position[first + token], tokens.depth[first + token],
                         kvHead_);
    });
  }

  /// Each score comes in a way that it alone decides on, so that no row's bits depend on other rows; all of
  /// them decide only whether the dearer way must be gone at all.
  template <int kTiles> __device__ __forceinline__ void cap(float (&s)[kTiles][4]) const {
    int places[2] = {};
    forEach(s, [&](float &x, int r, int) { places[r] |= capped(r).place(x); });
    const bool isAnyFar = __any_sync(~0u, capped(0).isBeyond(places[0]) || capped(1).isBeyond(places[1]));
    const auto far = [&](float x, int r) { return cappedFar(cap_[capOf(r)], doubleRate_[capOf(r)] * x); };
    if constexpr (Config::kHeadDim > 128) { // the same in fewer registers, and with a branch for each
      forEach(s, [&](float &x, int r, int) {
        float value = capped(r).near(x);
        if (isAnyFar && !capped(r).isNear(x))
          value = far(x, r);
        x = value;
      });
    } else if (isAnyFar) {
      forEach(s, [&](float &x, int r, int) {
        const float value = far(x, r);
        x = capped(r).isNear(x) ? capped(r).near(x) : value;
      });
    } else {
      forEach(s, [&](float &x, int r, int) { x = capped(r).near(x); });
    }
  }

  /// A token's distance to the origin of the thread's first row is made a float once, and the difference of
  /// the origins is added to it: exact up to 2^24.
  template <int kTiles>
  __device__ __forceinline__ void addSlopes(const TokenRecords &tokens, int group,
                                            float (&s)[kTiles][4]) const {
    const int first = group * 16 + lane_ % 4 * 2;
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
      const int2 position = *reinterpret_cast<const int2 *>(tokens.position + first + n * 8);
      const float distance[2] = {static_cast<float>(position.x - origin_[0]),
                                 static_cast<float>(position.y - origin_[0])};
#pragma unroll
      for (int c = 0; c < 4; ++c)
        s[n][c] = fmaf(slope_[c / 2], c < 2 ? distance[c % 2] : distance[c % 2] + fromOrigin_, s[n][c]);
    }
  }

  /// Scores as f(score, half of the rows, token after the thread's first one).
  template <int kTiles, class F>
  static __device__ __forceinline__ void forEach(float (&s)[kTiles][4], F &&f) {
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
#pragma unroll
      for (int c = 0; c < 4; ++c)
        f(s[n][c], c / 2, n * 8 + c % 2);
    }
  }

  const abi::AttendArgs &args_;
  const Params &params_;
  const int queryBegin_, rows_, kvHead_, firstRow_, lane_;
  int queryLo_, queryEnd_; ///< of the warp's rows, relative to the item
  int queryOfRow_[2];
  typename Variant::Row hookRow_[2];
  TileBounds bounds_;
  CappedScore capped_[2]; // what a score of a known form is made of
  float cap_[2], doubleRate_[2], slope_[2];
  int origin_[2];
  float fromOrigin_; ///< of the first row's origin to the second's
};

} // namespace deft
