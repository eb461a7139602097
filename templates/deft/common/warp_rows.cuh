#pragma once

#include "deft/abi.h"
#include "deft/common/finished_row.cuh"
#include "deft/common/formed_scores.cuh"
#include "deft/common/sinks.cuh"
#include "deft/common/token_values.cuh"
#include "deft/ptx/dependent_launch.cuh"

/// A warp's 16 rows and the tokens in front of it: decides which tokens the rows see, and computes the final
/// scores.
namespace deft {

/// Bounds of some tokens, all inclusive.
struct TokenBounds {
  int kvLo, kvHi; ///< position
  int depthLo, depthHi;
};

template <class Config, class Variant> class WarpRows {
  using Query = typename Config::Query;
  using Params = typename Variant::Params;
  using Form = FormOf<Variant>;
  using Forms = FormedScores<Config, Variant>;
  using Key = typename Config::Key;
  using Facts = TokenFacts<Config, Variant>;
  static_assert(
      kIsSame<Query, Key> || kIsConverted<Key> || requires { typename Config::StoredKey; },
      "products are of two of a kind");

public:
  /// Whether hooks need data about the queries: then call setQueries or loadQueryFacts.
  static constexpr bool kNeedsRow = Variant::kHasMask || Variant::kHasScore;
  /// Whether their results depend on the query. A single cap for all queries, and nothing else, does not need
  /// the query.
  static constexpr bool kNeedsQuery =
      Variant::kHasMask || (Variant::kHasScore && !(Form::kHasOneCap && !Form::kIsSloped));
  /// Whether they need the positions and depths of tokens.
  static constexpr bool kNeedsToken = Variant::kHasMask ||
                                      (Variant::kHasScore && (Form::kIsSloped || !Form::kIsKnown)) ||
                                      HasValueFactor<Variant>;
  static constexpr bool kFoldScale = Forms::kFoldScale;
  /// The factor from the scores of `score` to base 2.
  static constexpr float kUnit = kFoldScale ? Variant::kScale * kLog2e : kLog2e;
  /// Whether to use scoreRising: if scores are products with a slope, and only their differences matter.
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

  /// For this thread's two rows, clamped: q_pos and the caller's index.
  __device__ __forceinline__ void setQueries(const int (&qPos)[2], const int (&query)[2]) {
    int head[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      head[r] = headOf(clamped(row(r)));
      hookRow_[r] = Variant::row(params_, qPos[r], head[r], hookHead(), query[r]);
    }
    if constexpr (Variant::kHasScore)
      forms_.set(params_, hookRow_, qPos, hookHead());
    if constexpr (Variant::kHasMask) {
      bounds_.qLo = __reduce_min_sync(~0u, min(qPos[0], qPos[1]));
      bounds_.qHi = __reduce_max_sync(~0u, max(qPos[0], qPos[1]));
      if constexpr (Variant::kReadsQuery) {
        bounds_.queryLo = __reduce_min_sync(~0u, min(query[0], query[1]));
        bounds_.queryHi = __reduce_max_sync(~0u, max(query[0], query[1]));
      }
      bounds_.headLo = __reduce_min_sync(~0u, min(head[0], head[1]));
      bounds_.headHi = __reduce_max_sync(~0u, max(head[0], head[1]));
      bounds_.kvHead = hookHead();
    }
  }

  /// Loads the facts of the rows' queries from global memory, if shared memory does not have them.
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
  __device__ __forceinline__ int row(int r) const { return firstRow_ + fragmentRow(lane_, r); }
  __device__ __forceinline__ bool isReal(int row) const { return row < rows_; }
  /// Rows beyond the item repeat its last row; they are computed but not written.
  __device__ __forceinline__ int clamped(int row) const { return row < rows_ ? row : rows_ - 1; }
  __device__ __forceinline__ int headOf(int row) const {
    return kvHead_ * Config::kRatio + row % Config::kRatio;
  }
  /// The row after its sink; `lse` is that of its tokens.
  __device__ __forceinline__ SunkRow withSink(int row, float lse) const
    requires HasSink<Variant>
  {
    return sunk(lse, Variant::sink(params_, headOf(row), hookHead()));
  }
  /// The hook's arguments for a row of the output.
  __device__ __forceinline__ FinishedRow finished(int row) const {
    return {args_.queryPos[queryBegin_ + row / Config::kRatio], headOf(row), hookHead(), callerIndex(row)};
  }
  __device__ __forceinline__ const Params &params() const { return params_; }
  __device__ __forceinline__ int callerIndex(int row) const {
    return args_.callerIndex[queryBegin_ + row / Config::kRatio];
  }
  /// Called before a row of q is read. The previous kernel makes rows that have a hook (queries.cuh), and
  /// this kernel overlaps its end. All earlier work of the run has finished.
  static __device__ __forceinline__ void awaitQueries() {
    if constexpr (requires { &Variant::query; })
      ptx::awaitKernelBefore();
  }
  __device__ __forceinline__ const Query *queryRow(int row) const {
    return static_cast<const Query *>(args_.q) + static_cast<long long>(callerIndex(row)) * args_.qStride +
           headOf(row) * Config::kKeyDim;
  }

  /// The warp's queries as the a operand of m16k16 steps, loaded directly from global memory.
  template <int kSteps> __device__ __forceinline__ void loadQueries(unsigned (&query)[kSteps][4]) const {
    awaitQueries();
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const Query *from = queryRow(clamped(row(r))) + fragmentColumn(lane_);
#pragma unroll
      for (int k = 0; k < kSteps; ++k) {
        query[k][r] = *reinterpret_cast<const unsigned *>(from + k * 16);
        query[k][r + 2] = k * 16 + 8 < Config::kKeyDim // otherwise the row ends within the step
                              ? *reinterpret_cast<const unsigned *>(from + k * 16 + 8)
                              : 0u;
      }
    }
  }

  /// Which of 16 tokens the rows see; the same in all lanes.
  __device__ __forceinline__ Visibility visibility(const TokenRecords &tokens, int group) const {
    const int token = group * 16 + lane_ % 16;
    const int first = tokens.visible[token] & 0xffff, end = tokens.visible[token] >> 16;
    // This order avoids spills in some kernels.
    const bool any = __any_sync(~0u, first < queryEnd_ && end > queryLo_);
    const Visibility seen =
        visibility(__all_sync(~0u, first <= queryLo_ && end >= queryEnd_), boundsOf(tokens, token));
    return any ? seen : kHidden;
  }

  /// The bounds of 16 tokens, one per lane, if masks need them. Do not call it conditionally: ptxas 13.0
  /// would make predicated reductions of it, some with a wrong predicate.
  static __device__ __forceinline__ TokenBounds boundsOf(const TokenRecords &tokens, int token) {
    TokenBounds bounds{};
    if constexpr (Variant::kHasMask) {
      bounds.kvLo = __reduce_min_sync(~0u, tokens.position[token]);
      bounds.kvHi = __reduce_max_sync(~0u, tokens.position[token]);
      if constexpr (Variant::kReadsDepth) {
        bounds.depthLo = __reduce_min_sync(~0u, tokens.depth[token]);
        bounds.depthHi = __reduce_max_sync(~0u, tokens.depth[token]);
      }
    }
    return bounds;
  }

  /// For tokens that some row sees by the tree's rules, or that `all` rows see.
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

  /// The warp's queries within the item: [queryLo, queryEnd).
  __device__ __forceinline__ int queryLo() const { return queryLo_; }
  __device__ __forceinline__ int queryEnd() const { return queryEnd_; }
  __device__ __forceinline__ int kvHead() const { return kvHead_; }

  /// Turns products into final scores, without masks, for kGroups groups of 16 tokens from `group` on.
  template <int kGroups>
  __device__ __forceinline__ void score(const TokenRecords &tokens, int group,
                                        Fragment<2 * kGroups> &s) const {
    if constexpr (Form::kIsCapped)
      forms_.cap(s); // includes the scale
    else if constexpr (!kFoldScale)
      scale(s);
    if constexpr (Form::kIsSloped)
      forms_.addSlopes(tokens, group * 16 + fragmentColumn(lane_), s);
    if constexpr (!Form::kIsKnown)
      callHook(tokens, group, s);
  }

  /// Multiplies weights by the tokens' value factors, if there are any, for groups of 16 tokens from `group`
  /// on. Weights of 0 stay 0, since their tokens' factors may be undefined.
  template <int kTiles>
  __device__ __forceinline__ void multiplyByFactors(const TokenRecords &tokens, int group,
                                                    Fragment<kTiles> &weights) const {
    if constexpr (HasValueFactor<Variant>) {
      const int first = group * 16 + fragmentColumn(lane_);
      weights.forEach([&](float &x, int, int token) {
        const int at = first + token;
        const Facts facts(tokens, at, tokens.position[at], tokens.depth[at]);
        x = x != 0.f ? x * facts.valueFactor(params_, hookHead()) : 0.f;
      });
    }
  }

  /// Computes scores by their form; for kCapsLate.
  __device__ __forceinline__ const Forms &forms() const { return forms_; }

  /// `score` for a whole tile whose positions rise by one from token to token, if kRises; `common` must be
  /// added to all scores of a row.
  template <int kTiles>
  __device__ __forceinline__ void scoreRising(const TokenRecords &tokens, Fragment<kTiles> &s,
                                              float (&common)[2]) const {
    forms_.addRising(tokens.position[0] + fragmentColumn(lane_), s, common);
  }

  /// Whether the query of this thread's row half `r` is one of `queries`.
  __device__ __forceinline__ bool isAmong(int r, unsigned queries) const {
    const unsigned first = queries & 0xffff,
                   count = (queries >> 16) - first; // for no viewers: wraps, so none is below it
    return queryOfRow_[r] - first < count;
  }

  /// Sets the scores of tokens that the rows do not see to -inf, in a group of 16 tokens.
  __device__ __forceinline__ void hide(const TokenRecords &tokens, int group, Fragment<2> &s) const {
    if constexpr (Config::kValueDim != 80) {
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        const Pair pair(tokens, group * 16 + n * 8 + fragmentColumn(lane_));
        s.forEachOfTile(n, [&](float &x, int r, int column) { hide(pair, r, column % 2, x); });
      }
    } else { // the other order: ptxas spills with 80 columns in the first, with others in this
      const int token = group * 16 + fragmentColumn(lane_);
      const Pair pair[2] = {Pair(tokens, token), Pair(tokens, token + 8)};
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        hide(pair[0], c / 2, c % 2, s.tile[0][c]);
        hide(pair[1], c / 2, c % 2, s.tile[1][c]);
      }
    }
  }

  /// The same for tokens that all have the same `viewers`.
  template <int kTiles> __device__ __forceinline__ void hideAll(unsigned viewers, Fragment<kTiles> &s) const {
    s.forEach([&](float &x, int r, int) { x = isAmong(r, viewers) ? x : -kInfinity; });
  }

private:
  /// The records of a token and the next one, all loaded at once: a load that depends on another check would
  /// add a branch for each score.
  struct Pair {
    uint2 visible;
    int2 position{}, depth{};
    const TokenRecords &records;
    int first;

    __device__ __forceinline__ Pair(const TokenRecords &tokens, int token)
        : visible(*reinterpret_cast<const uint2 *>(tokens.visible + token)), records(tokens), first(token) {
      if constexpr (Variant::kHasMask) {
        position = *reinterpret_cast<const int2 *>(tokens.position + token);
        depth = *reinterpret_cast<const int2 *>(tokens.depth + token);
      }
    }

    __device__ __forceinline__ Facts facts(int second) const {
      return Facts(records, first + second, second == 0 ? position.x : position.y,
                   second == 0 ? depth.x : depth.y);
    }
  };

  /// Hides the score of row half r and the first or second token of a pair.
  __device__ __forceinline__ void hide(const Pair &pair, int r, int second, float &s) const {
    bool isVisible = isAmong(r, second == 0 ? pair.visible.x : pair.visible.y);
    if constexpr (Variant::kHasMask)
      isVisible &= pair.facts(second).mask(params_, hookRow_[r], hookHead());
    s = isVisible ? s : -kInfinity;
  }

  template <int kTiles> static __device__ __forceinline__ void scale(Fragment<kTiles> &s) {
    s.forEach([](float &x, int, int) { x *= Variant::kScale; });
  }

  template <int kTiles>
  __device__ __forceinline__ void callHook(const TokenRecords &tokens, int group, Fragment<kTiles> &s) const {
    const int first = group * 16 + fragmentColumn(lane_);
    s.forEach([&](float &x, int r, int token) {
      x = Facts(tokens, first + token, tokens.position[first + token], tokens.depth[first + token])
              .score(params_, hookRow_[r], x, hookHead());
    });
  }

  __device__ __forceinline__ int hookHead() const { return kvHeadForHooks<Config>(kvHead_); }

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
