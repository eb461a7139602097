#pragma once

#include "deft/sm90/turns.cuh"
#include "deft/sm90/warp_sums.cuh"

/// If warps have divided the tokens of a unit, their sums are joined in shared memory, always in the same
/// order.
namespace deft::sm90 {

template <class Config, class Variant> class Join {
  using L = Layout<Config>;
  using Sums = WarpSums<Config, Variant>;
  /// Numbers of named barriers.
  enum Barrier { kFull = kTurn + 2, kEmpty, kEmptyOfWide, kFirstGroup };

public:
  __device__ __forceinline__ explicit Join(char *shared) : shared_(shared) {}

  /// The second warpgroup waits until the first no longer needs the data in the buffers. If each has its own
  /// rows, the first does not wait here. It might then reach the next unit's barrier before the second
  /// reaches this one, so such units use another barrier: between two uses of the same one there are always
  /// the next unit's turns, or its sums.
  __device__ __forceinline__ void takeBuffers(int group, bool splitRows) const {
    const int barrier = splitRows ? kEmptyOfWide : kEmpty;
    if (group == 1)
      ptx::namedBarrierSync(barrier, 128 * 2);
    else
      ptx::namedBarrierArrive(barrier, 128 * 2);
  }

  /// After takeBuffers: the second warpgroup passes its sums to the first, warp by warp, in as many columns
  /// at a time as fit into a buffer. Only the first continues with them.
  __device__ __forceinline__ bool groups(Sums &sums, int group) const {
    if (group == 1) {
      give<0>(sums);
      return false;
    }
    ptx::namedBarrierSync(kFull, kThreads);
    const float4 facts = *factsPlace(threadIdx.x % 128);
    const float otherMaximum[2] = {facts.x, facts.y}, otherSum[2] = {facts.z, facts.w};
    float mine[2], other[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float top = fmaxf(sums.maximum[r], otherMaximum[r]);
      mine[r] = Sums::factor(sums.maximum[r], top);
      other[r] = Sums::factor(otherMaximum[r], top);
      sums.maximum[r] = top;
      sums.sum[r] = sums.sum[r] * mine[r] + otherSum[r] * other[r];
    }
    take<0>(sums, mine, other);
    return true;
  }

  /// The first warpgroup's warps hold the same 16 rows: afterwards each has their joint maxima and sums.
  __device__ __forceinline__ void shareFacts(Sums &sums) const {
    put<0>(sums); // a warp overwrites only data that it has read itself
    ptx::namedBarrierSync(kFirstGroup, 128);
    sums.maximum[0] = sums.maximum[1] = -kInfinity;
    for (int w = 0; w < 4; ++w) {
      const float4 facts = *factsPlace(w * 32 + threadIdx.x % 32);
      sums.maximum[0] = fmaxf(sums.maximum[0], facts.x);
      sums.maximum[1] = fmaxf(sums.maximum[1], facts.y);
    }
    sums.sum[0] = sums.sum[1] = 0.f;
    for (int w = 0; w < 4; ++w) {
      const float4 facts = *factsPlace(w * 32 + threadIdx.x % 32);
      sums.sum[0] += Sums::factor(facts.x, sums.maximum[0]) * facts.z;
      sums.sum[1] += Sums::factor(facts.y, sums.maximum[1]) * facts.w;
    }
  }

  /// After shareFacts: each warp passes some of the joined column tiles to `write(tile, values)`.
  template <class Write> __device__ __forceinline__ void warps(const Sums &sums, Write &&write) const {
    const int lane = threadIdx.x % 32;
    float weight[4][2];
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      const float4 facts = *factsPlace(w * 32 + lane);
      weight[w][0] = Sums::factor(facts.x, sums.maximum[0]);
      weight[w][1] = Sums::factor(facts.y, sums.maximum[1]);
    }
    joinFrom<0>(sums, weight, write);
  }

private:
  static constexpr int kThreads = 128 * 2;

  /// Columns kFirst, kFirst + 1, ...; their buffer has been taken already.
  template <int kFirst> __device__ __forceinline__ void give(const Sums &sums) const {
    put<kFirst>(sums);
    ptx::namedBarrierArrive(kFull, kThreads);
    if constexpr (L::bufferEnd(kFirst) < Sums::kColumnTiles) {
      takeBuffers(1, false);
      give<L::bufferEnd(kFirst)>(sums);
    }
  }

  /// Adds the columns from `give`, weighted by `other`.
  template <int kFirst>
  __device__ __forceinline__ void take(Sums &sums, const float (&mine)[2], const float (&other)[2]) const {
    constexpr int kEnd = L::bufferEnd(kFirst);
#pragma unroll
    for (int n = kFirst; n < kEnd; ++n) {
      const float4 part = *place(n - kFirst, threadIdx.x % 128);
      float (&out)[4] = sums.out.tile[n];
      out[0] = out[0] * mine[0] + part.x * other[0];
      out[1] = out[1] * mine[0] + part.y * other[0];
      out[2] = out[2] * mine[1] + part.z * other[1];
      out[3] = out[3] * mine[1] + part.w * other[1];
    }
    if constexpr (kEnd < Sums::kColumnTiles) {
      takeBuffers(0, false);
      ptx::namedBarrierSync(kFull, kThreads);
      take<kEnd>(sums, mine, other);
    }
  }

  /// Joins the columns that all four warps have put.
  template <int kFirst, class Write>
  __device__ __forceinline__ void joinFrom(const Sums &sums, const float (&weight)[4][2],
                                           Write &write) const {
    constexpr int kEnd = L::bufferEnd(kFirst);
    for (int n = kFirst + threadIdx.x / 32 % 4; n < kEnd; n += 4) {
      Fragment<1> total{};
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        const float4 part = *place(n - kFirst, w * 32 + threadIdx.x % 32);
        total.tile[0][0] += part.x * weight[w][0];
        total.tile[0][1] += part.y * weight[w][0];
        total.tile[0][2] += part.z * weight[w][1];
        total.tile[0][3] += part.w * weight[w][1];
      }
      write(n, total);
    }
    ptx::namedBarrierSync(kFirstGroup, 128); // all have read the buffers; the next sums may overwrite them
    if constexpr (kEnd < Sums::kColumnTiles) {
      put<kEnd>(sums);
      ptx::namedBarrierSync(kFirstGroup, 128);
      joinFrom<kEnd>(sums, weight, write);
    }
  }

  __device__ __forceinline__ float4 *place(int columnTile, int thread) const {
    return reinterpret_cast<float4 *>(buffer(thread)) + columnTile * 32 + thread % 32;
  }
  __device__ __forceinline__ float4 *factsPlace(int thread) const {
    return reinterpret_cast<float4 *>(buffer(thread) + L::kFactsOffset) + thread % 32;
  }
  __device__ __forceinline__ char *buffer(int thread) const {
    return shared_ + L::kBufferOffset + thread / 32 * L::kBufferBytes;
  }

  /// Stores as many columns as fit into a buffer; maxima and sums with the first ones.
  template <int kFirst> __device__ __forceinline__ void put(const Sums &sums) const {
    const int thread = threadIdx.x % 128;
#pragma unroll
    for (int n = kFirst; n < L::bufferEnd(kFirst); ++n)
      *place(n - kFirst, thread) =
          make_float4(sums.out.tile[n][0], sums.out.tile[n][1], sums.out.tile[n][2], sums.out.tile[n][3]);
    if constexpr (kFirst == 0)
      *factsPlace(thread) = make_float4(sums.maximum[0], sums.maximum[1], sums.sum[0], sums.sum[1]);
  }

  char *shared_;
};

} // namespace deft::sm90
