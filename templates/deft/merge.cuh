#pragma once

#include "deft/abi.h"
#include "deft/common/finished_row.cuh"
#include "deft/common/sinks.cuh"
#include "deft/plan_watch.cuh"
#include "deft/ptx/convert.cuh"
#include "deft/ptx/dependent_launch.cuh"
#include "deft/ptx/load_now.cuh"
#include "deft/types.cuh"

/// Reduces a query's partials to its output. A row's partials are summed in four parts: partial i in the
/// merge map's order belongs to part i % 4. The parts are added in a fixed order, by four warps if there are
/// few rows, otherwise by one. The result has the same bits in both cases and in every run.
namespace deft {

constexpr int kMergeWarps = 4; ///< of a block

template <class Config, bool kSigmoid, class Sinks, class Hook> class RowMerge {
  static constexpr int kPieces = Config::kValueDim / 4; ///< of 8 bytes
  static constexpr int kPerLane = (kPieces + 31) / 32;
  static constexpr int kParts = kMergeWarps;
  /// Partials of a warp whose loads are in flight at a time.
  static constexpr int kAtOnce = kPerLane > 2 ? kParts : 8 / kPerLane;
  static_assert(kAtOnce % kParts == 0, "a partial is in the same part in every round");

  struct Part {
    float weight = 0.f;
    float4 values[kPerLane] = {};

    __device__ __forceinline__ void add(const Part &other) {
      weight += other.weight;
#pragma unroll
      for (int p = 0; p < kPerLane; ++p) {
        values[p].x += other.values[p].x;
        values[p].y += other.values[p].y;
        values[p].z += other.values[p].z;
        values[p].w += other.values[p].w;
      }
    }
  };

public:
  /// Shared memory where the parts of a row wait for each other.
  struct Shared {
    float weight[kParts];
    float4 values[kParts][kPerLane * 32];
  };

  __device__ __forceinline__ RowMerge(const abi::MergeArgs &args, const Sinks &sinks, const Hook &hook,
                                      int merged, int query, int head)
      : args_(args), sinks_(sinks), hook_(hook), query_(query), head_(head), lane_(threadIdx.x % 32),
        caller_(args.callerIndex[query]), slots_(args.mergeSlot + args.mergeBegin[merged]),
        count_(args.mergeBegin[merged + 1] - args.mergeBegin[merged]) {}

  __device__ __forceinline__ void byWarp() {
    Part parts[kParts];
    sum(parts);
    join(parts);
  }

  /// All warps of the block share the row; all must call this.
  __device__ __forceinline__ void byBlock(Shared &shared) {
    const int warp = threadIdx.x / 32;
    Part mine[1];
    sum(mine);
    if (lane_ == 0)
      shared.weight[warp] = mine[0].weight;
#pragma unroll
    for (int p = 0; p < kPerLane; ++p)
      shared.values[warp][p * 32 + lane_] = mine[0].values[p];
    __syncthreads();
    if (warp == 0) {
      Part parts[kParts];
#pragma unroll
      for (int i = 0; i < kParts; ++i) {
        parts[i].weight = shared.weight[i];
#pragma unroll
        for (int p = 0; p < kPerLane; ++p)
          parts[i].values[p] = shared.values[i][p * 32 + lane_];
      }
      join(parts);
    }
    __syncthreads(); // before the next row's parts overwrite this
  }

private:
  __device__ __forceinline__ int place(int slot) const { return slot * Config::kQueryHeads + head_; }

  /// Some of the row's partials, being loaded: i, i + kStride, ...
  template <int kStride> struct Round {
    int places[kAtOnce];
    float lse[kAtOnce];
    uint2 values[kAtOnce][kPerLane];

    /// Every lane loads the same slots and logarithms as others: shuffles would separate the loads.
    __device__ __forceinline__ void find(const RowMerge &row, int i) {
#pragma unroll
      for (int n = 0; n < kAtOnce; ++n) // repeats the last one if there are fewer
        places[n] = row.place(row.slots_[min(i + n * kStride, row.count_ - 1)]);
    }

    __device__ __forceinline__ void ask(const RowMerge &row) {
#pragma unroll
      for (int n = 0; n < kAtOnce; ++n) {
        const uint2 *from =
            static_cast<const uint2 *>(row.args_.partialOut) + static_cast<long long>(places[n]) * kPieces;
#pragma unroll
        for (int p = 0; p < kPerLane; ++p)
          values[n][p] = ptx::loadNow(from + min(p * 32 + row.lane_, kPieces - 1));
        if constexpr (!kSigmoid)
          lse[n] = row.args_.partialLse[places[n]];
      }
    }
  };

  /// The row's largest logarithm; lane i passes that of partial i.
  __device__ __forceinline__ float largestLse(float top) const {
#pragma unroll 1
    for (int i = lane_ + 32; i < count_; i += 32)
      top = fmaxf(top, args_.partialLse[place(slots_[i])]);
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
      top = fmaxf(top, __shfl_xor_sync(~0u, top, step));
    return top == -kInfinity ? 0.f : top;
  }

  /// Sums the warp's partials, all of the row or every fourth, in kCount parts. The first values are loaded
  /// before the largest logarithm is known: a row of few partials then waits for memory only once.
  template <int kCount> __device__ __forceinline__ void sum(Part (&parts)[kCount]) {
    constexpr int kStride = kParts / kCount;
    int i = kCount == 1 ? threadIdx.x / 32 : 0;
    if (i >= count_)
      return; // no partial to wait for
    const int mine = place(slots_[min(lane_, count_ - 1)]);
    Round<kStride> round;
    round.find(*this, i);
    ptx::awaitKernelBefore(); // the plan was ready earlier, the partials are not
    float top = 0.f;
    if constexpr (!kSigmoid)
      top = args_.partialLse[mine];
    round.ask(*this);
    if constexpr (!kSigmoid)
      shift_ = largestLse(top);
#pragma unroll 1
    while (true) {
      __syncwarp(); // keeps the loads above: the compiler must not move them to their uses
#pragma unroll
      for (int n = 0; n < kAtOnce; ++n) {
        // An empty partial is (0, -inf): its weight exp2(-inf) is 0 and adds nothing.
        const float weight = kSigmoid ? 1.f : ptx::exp2Fast((round.lse[n] - shift_) * kLog2e);
        if (i + n * kStride < count_)
          add(parts[n % kCount], weight, round.values[n]);
      }
      i += kStride * kAtOnce;
      if (i >= count_)
        break;
      round.find(*this, i);
      round.ask(*this);
    }
  }

  static __device__ __forceinline__ void add(Part &part, float weight, const uint2 (&values)[kPerLane]) {
    part.weight += weight;
#pragma unroll
    for (int p = 0; p < kPerLane; ++p) {
      const float2 low = ptx::unpack2<Partial<Config>>(values[p].x),
                   high = ptx::unpack2<Partial<Config>>(values[p].y);
      part.values[p].x += weight * low.x;
      part.values[p].y += weight * low.y;
      part.values[p].z += weight * high.x;
      part.values[p].w += weight * high.y;
    }
  }

  __device__ __forceinline__ void join(Part (&parts)[kParts]) const {
#pragma unroll
    for (int distance = 1; distance < kParts; distance *= 2) {
#pragma unroll
      for (int i = 0; i < kParts; i += 2 * distance)
        parts[i].add(parts[i + distance]);
    }
    write(parts[0]);
  }

  __device__ __forceinline__ void write(const Part &total) const {
    float scale = kSigmoid ? 1.f : total.weight > 0.f ? ptx::reciprocalFast(total.weight) : 0.f;
    const auto lseOfTokens = [&] { return shift_ + ptx::log2Fast(total.weight) * kLn2; }; // no key: 0 + -inf
    SunkRow whole{};
    if constexpr (Sinks::kAreThere) {
      whole = sunk(lseOfTokens(), sinks_(head_));
      scale *= whole.share;
    }
    using Output = typename Config::Output;
    Output *out = static_cast<Output *>(args_.out) + caller_ * args_.outStride + head_ * Config::kValueDim;
#pragma unroll
    for (int p = 0; p < kPerLane; ++p) {
      const int piece = p * 32 + lane_;
      const float4 value = total.values[p];
      float4 written = make_float4(value.x * scale, value.y * scale, value.z * scale, value.w * scale);
      if constexpr (Hook::kIsThere)
        written = hook_(written, min(piece, kPieces - 1) * 4, args_.queryPos[query_], head_,
                        static_cast<int>(caller_));
      if (kPieces % 32 == 0 || piece < kPieces)
        *reinterpret_cast<uint2 *>(out + piece * 4) =
            make_uint2(ptx::pack2<Output>(written.x, written.y), ptx::pack2<Output>(written.z, written.w));
    }
    if (Config::kWithLse && lane_ == 0 && args_.lse != nullptr)
      args_.lse[caller_ * Config::kQueryHeads + head_] = Sinks::kAreThere ? whole.lse : lseOfTokens();
  }

  const abi::MergeArgs &args_;
  const Sinks &sinks_;
  const Hook &hook_;
  const int query_; ///< in the plan's order
  const int head_, lane_;
  const long long caller_; ///< the caller's index of the query
  const int *slots_;
  const int count_;
  float shift_ = 0.f; ///< the largest logarithm, which keeps the weights in range
};

/// The whole launch. If the plan is watched, the first block does only that: it waits for the host's memory
/// while the others merge.
template <class Config, bool kSigmoid, class Sinks = NoSinks, class Hook = NoOutputHook>
__device__ __forceinline__ void merge(const abi::MergeArgs &args, const Sinks &sinks = {},
                                      const Hook &hook = {}) {
  using Row = RowMerge<Config, kSigmoid, Sinks, Hook>;
  __shared__ typename Row::Shared shared;
  const int watchers = args.watch != nullptr ? 1 : 0;
  if (static_cast<int>(blockIdx.x) < watchers) {
    watchPlan(args.watch, args.runsOfPlan);
    ptx::awaitKernelBefore();
    return;
  }
  const int blocks = gridDim.x - watchers, block = blockIdx.x - watchers;
  const int rows = args.mergeCount * Config::kQueryHeads;
  const bool byBlock = rows <= blocks;
  const int stride = byBlock ? blocks : blocks * kMergeWarps;
  for (int at = byBlock ? block : block + blocks * static_cast<int>(threadIdx.x / 32); at < rows;
       at += stride) {
    const int merged = at / Config::kQueryHeads;
    const int query = args.mergeQuery[merged];
    if (query < 0)
      break; // this plan merges fewer queries than the captured graph allows
    Row row(args, sinks, hook, merged, query, at % Config::kQueryHeads);
    if (byBlock)
      row.byBlock(shared);
    else
      row.byWarp();
  }
  ptx::awaitKernelBefore(); // later kernels rely on the end of both kernels, even if nothing was merged
}

} // namespace deft
