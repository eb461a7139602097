#pragma once

#include "deft/hook_math.cuh"
#include "deft/partner_columns.cuh"
#include "deft/ptx/dependent_launch.cuh"
#include "deft/query_abi.h"
#include "deft/types.cuh"

/// The hook `query` for rows of q: a warp handles groups of heads of one query in turn.
namespace deft {

/// Warps of a block. With many, few multiprocessors have a block; on the others the attention starts at once.
constexpr int kQueryWarps = 16;

/// Whether the hook reads the root mean square of its row; packages without this constant may read it.
template <class Variant> constexpr __device__ bool queryReadsRms() {
  if constexpr (requires { Variant::kQueryReadsRms; })
    return Variant::kQueryReadsRms;
  else
    return true;
}

template <class Config, class Variant> class QueryHeads {
  using Query = typename Config::Query;
  static constexpr int kWidth = 4; ///< of a column; every head dim is a number of pairs of these
  static constexpr int kHalf = Config::kKeyDim / (2 * kWidth); ///< columns of half a row
  static constexpr int kLanes = lanesOfRow(kHalf);
  static_assert(Config::kKeyDim % (2 * kWidth) == 0 && kLanes <= 32, "a row has the lanes of a warp");
  static constexpr int kAtOnce = 32 / kLanes; ///< rows
  /// Rows per lane, all loaded before the first is made. Few, so that an attention of few queries fills the
  /// multiprocessors; but several, to share values that depend only on the query and dims.
  static constexpr int kSteps = 4;

public:
  /// The heads of one query for one warp.
  static constexpr int kHeads = kAtOnce * kSteps;

  __device__ __forceinline__ QueryHeads(const abi::QueryArgs &args, const typename Variant::Params &params,
                                        int query)
      : params_(params), qPos_(args.queryPos[query]), caller_(args.callerIndex[query]),
        hasColumn_(kLanes == kHalf || threadIdx.x % kLanes < kHalf),
        column_(hasColumn_ ? static_cast<int>(threadIdx.x % kLanes) : 0),
        row_(static_cast<int>(threadIdx.x % 32 / kLanes)),
        from_(static_cast<const Query *>(args.q) + static_cast<long long>(caller_) * args.qStride),
        to_(static_cast<Query *>(args.made) +
            static_cast<long long>(caller_) * Config::kQueryHeads * Config::kKeyDim) {}

  /// Makes the heads from `first` on, up to the last. A lane without a column or beyond the heads computes
  /// another lane's: hooks may read arrays by dim and head.
  __device__ __forceinline__ void make(int first) const {
    uint2 low[kSteps], high[kSteps];
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const auto *const row = columnsOf<const uint2>(from_, headOf(first, step));
      low[step] = row[column_];
      high[step] = row[column_ + kHalf];
    }
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const int head = headOf(first, step);
      Own a, b;
      a.unpack({low[step].x, low[step].y});
      b.unpack({high[step].x, high[step].y});
      float rms = 0.f;
      if constexpr (queryReadsRms<Variant>())
        rms = rootMeanSquare<kLanes, Config::kKeyDim>(hasColumn_ ? a.squares() + b.squares() : 0.f);
      low[step] = made(a, b, rms, column_ * kWidth, head);
      high[step] = made(b, a, rms, (column_ + kHalf) * kWidth, head);
    }
    // After all rows: the compiler must assume that a store changes an array that the hook reads.
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const int head = wantedHead(first, step);
      if (!hasColumn_ || head >= Config::kQueryHeads)
        continue;
      auto *const row = columnsOf<uint2>(to_, head);
      row[column_] = low[step];
      row[column_ + kHalf] = high[step];
    }
  }

private:
  using Own = Column<Query, kWidth>;

  /// It may be beyond the heads.
  __device__ __forceinline__ int wantedHead(int first, int step) const {
    return first + step * kAtOnce + row_;
  }
  /// Repeats the last head.
  __device__ __forceinline__ int headOf(int first, int step) const {
    return min(wantedHead(first, step), Config::kQueryHeads - 1);
  }
  /// A head's row.
  template <class Words, class Element>
  static __device__ __forceinline__ Words *columnsOf(Element *heads, int head) {
    return reinterpret_cast<Words *>(heads + head * Config::kKeyDim);
  }

  /// Makes a column of the row from `dim` on.
  __device__ __forceinline__ uint2 made(const Own &own, const Own &half, float rms, int dim, int head) const {
    unsigned words[2];
    makeColumn(own, half, words, [&](float x, float other, float pair, int i) {
      return Variant::query(params_, x, other, pair, rms, dim + i, qPos_, head,
                            kvHeadForHooks<Config>(head / Config::kRatio), caller_);
    });
    return make_uint2(words[0], words[1]);
  }

  const typename Variant::Params &params_;
  const int qPos_, caller_;
  const bool hasColumn_;
  const int column_, row_;
  const Query *from_;
  Query *to_;
};

/// The whole launch.
template <class Config, class Variant>
__device__ __forceinline__ void makeQueries(const abi::QueryArgs &args,
                                            const typename Variant::Params &params) {
  ptx::allowDependents(); // these wait for all rows before they read the first
  using Heads = QueryHeads<Config, Variant>;
  constexpr int kParts = (Config::kQueryHeads + Heads::kHeads - 1) / Heads::kHeads; // of a query
  const int all = args.queries * kParts;
  for (int at = blockIdx.x * kQueryWarps + threadIdx.x / 32; at < all; at += gridDim.x * kQueryWarps) {
    const int query = at / kParts;
    if (args.callerIndex[query] < 0)
      break; // this plan has fewer queries than the captured graph allows
    Heads(args, params, query).make(at % kParts * Heads::kHeads);
  }
}

} // namespace deft
