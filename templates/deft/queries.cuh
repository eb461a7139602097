#pragma once

#include "deft/hook_math.cuh"
#include "deft/ptx/convert.cuh"
#include "deft/ptx/dependent_launch.cuh"
#include "deft/query_abi.h"
#include "deft/types.cuh"

/// The hook `query` for rows of q: a warp takes one row after the other. A lane has pairs of neighbours;
/// partners half a head away come from shared memory.
namespace deft {

/// Of a block. Many, so that few multiprocessors have one: on the others the attention begins at once.
constexpr int kQueryWarps = 16;

template <class Config, class Variant> class QueryRow {
  using Query = typename Config::Query;
  static constexpr int kPairs = Config::kKeyDim / 2;
  static constexpr int kPerLane = (kPairs + 31) / 32;

public:
  /// Of a warp: the row's elements.
  using Shared = float2[kPairs];

  __device__ __forceinline__ QueryRow(const abi::QueryArgs &args, const typename Variant::Params &params,
                                      int query, int head)
      : params_(params), qPos_(args.queryPos[query]), caller_(args.callerIndex[query]), head_(head),
        lane_(threadIdx.x % 32),
        from_(reinterpret_cast<const unsigned *>(static_cast<const Query *>(args.q) +
                                                 static_cast<long long>(caller_) * args.qStride +
                                                 head * Config::kKeyDim)),
        to_(reinterpret_cast<unsigned *>(static_cast<Query *>(args.made) +
                                         (static_cast<long long>(caller_) * Config::kQueryHeads + head) *
                                             Config::kKeyDim)) {}

  __device__ __forceinline__ void make(Shared &row) const {
    float2 own[kPerLane];
    float squares = 0.f;
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
      const int pair = i * 32 + lane_;
      own[i] = pair < kPairs ? ptx::unpack2<Query>(from_[pair]) : make_float2(0.f, 0.f);
      squares = fmaf(own[i].x, own[i].x, fmaf(own[i].y, own[i].y, squares));
      if (pair < kPairs)
        row[pair] = own[i];
    }
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
      squares += __shfl_xor_sync(~0u, squares, step);
    const float rms = sqrtf(squares * (1.f / Config::kKeyDim));
    __syncwarp();
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
      const int pair = i * 32 + lane_;
      if (pair >= kPairs)
        continue;
      const float2 x = own[i], half = row[pair < kPairs / 2 ? pair + kPairs / 2 : pair - kPairs / 2];
      to_[pair] = ptx::pack2<Query>(element(x.x, half.x, x.y, rms, 2 * pair),
                                    element(x.y, half.y, x.x, rms, 2 * pair + 1));
    }
    __syncwarp(); // before the next row comes
  }

private:
  static_assert(Config::kKeyDim % 4 == 0, "a pair's partners are a pair");

  __device__ __forceinline__ float element(float x, float half, float pair, float rms, int dim) const {
    return Variant::query(params_, x, half, pair, rms, dim, qPos_, head_, head_ / Config::kRatio, caller_);
  }

  const typename Variant::Params &params_;
  const int qPos_, caller_, head_, lane_;
  const unsigned *from_;
  unsigned *to_;
};

/// The whole launch.
template <class Config, class Variant>
__device__ __forceinline__ void makeQueries(const abi::QueryArgs &args,
                                            const typename Variant::Params &params) {
  ptx::allowDependents(); // which wait for all rows where they read the first
  using Row = QueryRow<Config, Variant>;
  __shared__ typename Row::Shared rows[kQueryWarps];
  const int warp = threadIdx.x / 32, all = args.queries * Config::kQueryHeads;
  for (int at = blockIdx.x * kQueryWarps + warp; at < all; at += gridDim.x * kQueryWarps) {
    const int query = at / Config::kQueryHeads;
    if (args.callerIndex[query] < 0)
      break; // the plan has fewer than the graph was captured for
    Row(args, params, query, at % Config::kQueryHeads).make(rows[warp]);
  }
}

} // namespace deft
