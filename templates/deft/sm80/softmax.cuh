#pragma once

#include "deft/ptx/convert.cuh"
#include "deft/types.cuh"

/// Scores to weights, for the two rows that a thread holds of an m16n8 accumulator.
namespace deft::sm80 {

/// Online softmax in base 2. The maximum is kept in the units of the score as it arrives; `kUnit`
/// takes it to base 2 inside the multiply-add that feeds the exponential, so that q is never rescaled.
/// It must be positive: the largest score has to give the largest exponent.
struct OnlineSoftmax {
  float unit;
  float maximum[2] = {-kInfinity, -kInfinity};
  float sum[2] = {0.f, 0.f}; ///< of this thread's columns only, until the end

  __device__ __forceinline__ explicit OnlineSoftmax(float unit) : unit(unit) {}

  /// Replaces scores by weights; `rescale` is what earlier accumulators must be multiplied by.
  template <int kTiles> __device__ __forceinline__ void step(float (&s)[kTiles][4], float (&rescale)[2]) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float top = maximum[r];
#pragma unroll
      for (int n = 0; n < kTiles; ++n)
        top = fmaxf(top, fmaxf(s[n][2 * r], s[n][2 * r + 1]));
      top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
      top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
      // A row that has seen no key yet subtracts 0, not -inf: exp2(-inf + inf) would be NaN for good.
      const float shift = top == -kInfinity ? 0.f : top * unit;
      rescale[r] = ptx::exp2Fast(fmaf(maximum[r], unit, -shift));
      maximum[r] = top;
      sum[r] *= rescale[r];
#pragma unroll
      for (int n = 0; n < kTiles; ++n) {
#pragma unroll
        for (int c = 2 * r; c < 2 * r + 2; ++c) {
          s[n][c] = ptx::exp2Fast(fmaf(s[n][c], unit, -shift));
          sum[r] += s[n][c];
        }
      }
    }
  }

  /// Joins the four threads of a row.
  __device__ __forceinline__ void finish() {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      sum[r] += __shfl_xor_sync(~0u, sum[r], 1);
      sum[r] += __shfl_xor_sync(~0u, sum[r], 2);
    }
  }
};

/// sigmoid(score); a hidden score of -inf gives 0.
__device__ __forceinline__ float sigmoidWeight(float score) {
  return __fdividef(1.f, 1.f + ptx::exp2Fast(-score * kLog2e));
}

} // namespace deft::sm80
