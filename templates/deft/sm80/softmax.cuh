#pragma once

#include "deft/common/fragment.cuh"
#include "deft/ptx/convert.cuh"
#include "deft/types.cuh"

/// Turns scores into weights, for the two rows of a thread's fragment.
namespace deft::sm80 {

/// Online softmax in base 2. The maximum keeps the scores' units; `unit` converts it to base 2 in the
/// multiply-add before the exponential, so that q is never rescaled. It must be positive: the largest score
/// must have the largest exponent.
struct OnlineSoftmax {
  float unit;
  float maximum[2] = {-kInfinity, -kInfinity};
  float sum[2] = {0.f, 0.f}; ///< over this thread's columns only, until finish()

  __device__ __forceinline__ explicit OnlineSoftmax(float unit) : unit(unit) {}

  /// Replaces scores by weights; earlier accumulators must be multiplied by `rescale`.
  template <int kTiles> __device__ __forceinline__ void step(Fragment<kTiles> &s, float (&rescale)[2]) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float top = largestOfRow(s.largest(r, maximum[r]));
      // A row that has not seen a key yet subtracts 0, not -inf: exp2(-inf + inf) would stay NaN.
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

  /// Adds up the sums of a row's four threads.
  __device__ __forceinline__ void finish() {
#pragma unroll
    for (int r = 0; r < 2; ++r)
      sum[r] = sumOfRow(sum[r]);
  }
};

} // namespace deft::sm80
