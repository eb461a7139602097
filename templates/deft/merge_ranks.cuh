#pragma once

#include "deft/merge_states.cuh"

/// Merges the results of several ranks for the same rows, independent of the transport: in the order of
/// ranks, so that the bits do not depend on timing.
namespace deft {

/// `Parts` has outsOf(rank), [query][heads][dim], lsesOf(rank), [query][heads], and blocks of kThreads.
/// `Args` has the range of these heads to merge, and the destination.
template <class Element, class Args, class Parts> class RanksMerge {
  using Piece = StatePiece<Element>;

public:
  __device__ __forceinline__ RanksMerge(const Parts &parts, const Args &args)
      : parts_(parts), args_(args), pieces_(args.dim / Piece::kValues) {}

  /// Reading a peer's memory takes 1-2 microseconds: a row's data from all ranks is loaded at once.
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

  /// Each row has args_.lanesOfRow lanes of a warp.
  template <int kAtOnce> __device__ __forceinline__ void mergeRowsOf() const {
    const int lane = static_cast<int>(threadIdx.x) % args_.lanesOfRow;
    const long long count = static_cast<long long>(args_.queries) * args_.headCount;
#pragma unroll 1
    for (long long to = thread() / args_.lanesOfRow; to < count; to += threads() / args_.lanesOfRow) {
      const long long query = to / args_.headCount;
      mergeRow<kAtOnce>(query * args_.heads + args_.headBegin + (to - query * args_.headCount), to, lane);
    }
  }

  /// The logarithms of ranks [first, first + kAtOnce), -inf for ranks that do not exist.
  template <int kAtOnce>
  __device__ __forceinline__ void read(float (&lses)[kAtOnce], int first, long long row) const {
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
      lses[i] = first + i < args_.count ? parts_.lsesOf(first + i)[row] : -kInfinity;
  }

  /// A piece of the row from each of these ranks.
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
    // More than four pieces with their logarithms exceed the registers of some GPUs.
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
    const float scale = total == 0.f ? 0.f : 1.f / total; // 0: no rank saw a token
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
            sum.add(weight, packed[i]); // the data of an empty part is ignored; NaN is passed on
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
