#pragma once

#include "deft/abi.h"
#include "deft/plan_watch.cuh"
#include "deft/ptx/convert.cuh"
#include "deft/ptx/dependent_launch.cuh"
#include "deft/types.cuh"

/// The reduction of a query's partials into its output: one warp a row, partials in the order of the
/// merge map, so that the result has the same bits in every run.
namespace deft {

constexpr int kMergeWarps = 4; ///< of a block

template <class Config, bool kSigmoid>
__device__ __forceinline__ void mergeRow(const abi::MergeArgs &args, int merged, int query, int head) {
  constexpr int kPieces = Config::kHeadDim / 4;
  constexpr int kPerLane = (kPieces + 31) / 32;
  const int lane = threadIdx.x % 32;
  const int begin = args.mergeBegin[merged], end = args.mergeBegin[merged + 1];
  const int ownSlot = begin + lane < end ? args.mergeSlot[begin + lane] : 0;
  ptx::awaitKernelBefore(); // the plan was there already, the partials are not

  float top = -kInfinity;
  if constexpr (!kSigmoid) {
    if (begin + lane < end)
      top = args.partialLse[static_cast<long long>(ownSlot) * Config::kQueryHeads + head];
    for (int i = begin + lane + 32; i < end; i += 32)
      top =
          fmaxf(top, args.partialLse[static_cast<long long>(args.mergeSlot[i]) * Config::kQueryHeads + head]);
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
      top = fmaxf(top, __shfl_xor_sync(~0u, top, step));
  }
  const float shift = top == -kInfinity ? 0.f : top;

  float sum = 0.f;
  float4 total[kPerLane] = {};
#pragma unroll 4 // several partials are on their way at a time
  for (int i = begin; i < end; ++i) {
    const int slot = i - begin < 32 ? __shfl_sync(~0u, ownSlot, i - begin) : args.mergeSlot[i];
    const long long place = static_cast<long long>(slot) * Config::kQueryHeads + head;
    // An empty partial is (0, -inf): its weight exp2(-inf) is 0 and adds nothing.
    const float weight = kSigmoid ? 1.f : ptx::exp2Fast((args.partialLse[place] - shift) * kLog2e);
    sum += weight;
#pragma unroll
    for (int p = 0; p < kPerLane; ++p) {
      const int piece = p * 32 + lane;
      if (kPieces % 32 == 0 || piece < kPieces) {
        const float4 part =
            *reinterpret_cast<const float4 *>(args.partialOut + place * Config::kHeadDim + piece * 4);
        total[p].x += weight * part.x;
        total[p].y += weight * part.y;
        total[p].z += weight * part.z;
        total[p].w += weight * part.w;
      }
    }
  }

  const float scale = kSigmoid ? 1.f : sum > 0.f ? 1.f / sum : 0.f;
  const long long row = static_cast<long long>(args.callerIndex[query]) * Config::kQueryHeads + head;
  using Output = typename Config::Output;
#pragma unroll
  for (int p = 0; p < kPerLane; ++p) {
    const int piece = p * 32 + lane;
    if (kPieces % 32 == 0 || piece < kPieces)
      *reinterpret_cast<uint2 *>(static_cast<Output *>(args.out) + row * Config::kHeadDim + piece * 4) =
          make_uint2(ptx::pack2<Output>(total[p].x * scale, total[p].y * scale),
                     ptx::pack2<Output>(total[p].z * scale, total[p].w * scale));
  }
  if (Config::kWithLse && lane == 0 && args.lse != nullptr)
    args.lse[row] = shift + ptx::log2Fast(sum) * kLn2; // no key: 0 + -inf
}

/// The whole launch. Where the plan is watched, the first block does that and nothing else: it waits for the
/// host's memory while the others merge.
template <class Config, bool kSigmoid> __device__ __forceinline__ void merge(const abi::MergeArgs &args) {
  const int watchers = args.watch != nullptr ? 1 : 0;
  if (static_cast<int>(blockIdx.x) < watchers) {
    watchPlan(args.watch, args.runsOfPlan);
    ptx::awaitKernelBefore();
    return;
  }
  const long long tasks = static_cast<long long>(args.mergeCount) * Config::kQueryHeads;
  const long long stride = static_cast<long long>(gridDim.x - watchers) * kMergeWarps;
  for (long long task = static_cast<long long>(blockIdx.x - watchers) * kMergeWarps + threadIdx.x / 32;
       task < tasks; task += stride) {
    const int merged = static_cast<int>(task / Config::kQueryHeads);
    const int query = args.mergeQuery[merged];
    if (query < 0)
      break; // the plan merges fewer than the graph was captured for
    mergeRow<Config, kSigmoid>(args, merged, query, static_cast<int>(task % Config::kQueryHeads));
  }
  ptx::awaitKernelBefore(); // whoever comes next counts on both kernels' end, where nothing was merged, too
}

} // namespace deft
