#pragma once

#include "deft/common/fragment.cuh"
#include "deft/ptx/convert.cuh"
#include "deft/types.cuh"

/// Scores to weights, for the two rows that a thread holds of a fragment.
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
  template <int kTiles> __device__ __forceinline__ void step(Fragment<kTiles> &s, float (&rescale)[2]) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float top = largestOfRow(s.largest(r, maximum[r]));
      // A row that has seen no key yet subtracts 0, not -inf: exp2(-inf + inf) would be NaN for good.
      const float shift = top == -kInfinity ? 0.f : top * unit;
      rescale[r] = ptx::exp2Fast(fmaf(maximum[r], unit, -shift));
      maximum[r] = top;
      sum[r] *= rescale[r];
      s.forEachOfRow(r, [&](float &x) {
        x = ptx::exp2Fast(fmaf(x, unit, -shift));
        sum[r] += x;
      });
    }
  }

  /// Joins the four threads of a row.
  __device__ __forceinline__ void finish() {
#pragma unroll
    for (int r = 0; r < 2; ++r)
      sum[r] = sumOfRow(sum[r]);
  }
};

} // namespace deft::sm80
