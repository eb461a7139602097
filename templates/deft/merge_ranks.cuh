#pragma once

#include "deft/merge_states.cuh"

/// What several ranks have computed of the same rows becomes one, however their parts have come here: in the
/// order of ranks, so that the bits do not depend on timing.
namespace deft {

/// `Parts` gives outsOf(rank), [query][heads][dim], and lsesOf(rank), [query][heads], in blocks of kThreads.
/// `Args` says which heads of these are merged, and where they go.
template <class Element, class Args, class Parts> class RanksMerge {
  using Piece = StatePiece<Element>;

public:
  __device__ __forceinline__ RanksMerge(const Parts &parts, const Args &args)
      : parts_(parts), args_(args), pieces_(args.dim / Piece::kValues) {}

  /// Reading a peer's memory takes a microsecond or two: what a row needs of all ranks is asked for at once.
  __device__ __forceinline__ void mergeRows() const {
    if (args_.count <= 2)
      mergeRowsOf<2>();
    else if (args_.count <= 4)
      mergeRowsOf<4>();
    else
      mergeRowsOf<8>();
  }

private:
  __device__ __forceinline__ long long thread() const {
    return static_cast<long long>(blockIdx.x) * Parts::kThreads + threadIdx.x;
  }
  __device__ __forceinline__ long long threads() const {
    return static_cast<long long>(gridDim.x) * Parts::kThreads;
  }

  /// A row has so many lanes of a warp.
  template <int kAtOnce> __device__ __forceinline__ void mergeRowsOf() const {
    const int lane = static_cast<int>(threadIdx.x) % args_.lanesOfRow;
    const long long count = static_cast<long long>(args_.queries) * args_.headCount;
#pragma unroll 1
    for (long long to = thread() / args_.lanesOfRow; to < count; to += threads() / args_.lanesOfRow) {
      const long long query = to / args_.headCount;
      mergeRow<kAtOnce>(query * args_.heads + args_.headBegin + (to - query * args_.headCount), to, lane);
    }
  }

  /// The logarithms of ranks [first, first + kAtOnce), -inf for those that are not there.
  template <int kAtOnce>
  __device__ __forceinline__ void read(float (&lses)[kAtOnce], int first, long long row) const {
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
      lses[i] = first + i < args_.count ? parts_.lsesOf(first + i)[row] : -kInfinity;
  }

  /// A piece of the row of those ranks.
  template <int kAtOnce>
  __device__ __forceinline__ void read(uint4 (&packed)[kAtOnce], int first, long long row, int piece) const {
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
      if (first + i < args_.count)
        packed[i] = parts_.outsOf(first + i)[row * pieces_ + piece];
  }

  template <int kAtOnce>
  __device__ __forceinline__ void mergeRow(long long row, long long to, int lane) const {
    float lses[kAtOnce];
    uint4 packed[kAtOnce];
    const bool areAllAtOnce = args_.count <= kAtOnce;
    // More than four pieces with their logarithms do not fit registers on all GPUs.
    const bool isAhead = kAtOnce <= 4 && areAllAtOnce;
    if (isAhead && lane < pieces_)
      read(packed, 0, row, lane);
    float top = -kInfinity, total = 0.f;
#pragma unroll 1
    for (int first = 0; first < args_.count; first += kAtOnce) {
      read(lses, first, row);
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i)
        top = lses[i] > top ? lses[i] : top;
    }
    const float shift = top == -kInfinity ? 0.f : top;
#pragma unroll 1
    for (int first = 0; first < args_.count; first += kAtOnce) {
      if (!areAllAtOnce)
        read(lses, first, row);
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i)
        total += weightOf(lses[i], shift);
    }
    const float scale = total == 0.f ? 0.f : 1.f / total; // of a row that nobody saw: 0
#pragma unroll 1
    for (int piece = lane; piece < pieces_; piece += args_.lanesOfRow) {
      Piece sum;
#pragma unroll 1
      for (int first = 0; first < args_.count; first += kAtOnce) {
        if (!areAllAtOnce)
          read(lses, first, row);
        if (!isAhead || piece != lane)
          read(packed, first, row, piece);
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i)
          if (const float weight = weightOf(lses[i], shift); weight != 0.f)
            sum.add(weight, packed[i]); // what an empty part has does not matter; NaN is passed on
      }
      static_cast<uint4 *>(args_.out)[to * pieces_ + piece] = sum.pack(scale);
    }
    if (lane == 0 && args_.lse != nullptr)
      args_.lse[to] = shift + ptx::log2Fast(total) * kLn2;
  }

  /// NaN stays NaN.
  __device__ __forceinline__ float weightOf(float lse, float shift) const {
    return ptx::exp2Fast((lse - shift) * kLog2e);
  }

  const Parts &parts_;
  const Args &args_;
  const int pieces_;
};

} // namespace deft
