#pragma once

#include "deft/ptx/convert.cuh"

/// What scores are computed with where the toolkit's own functions cost more than they have to.
namespace deft {

/// tanh x to 1e-5 of itself, without the branch of tanhf.
__device__ __forceinline__ float tanhFast(float x) {
  const float far = 1.f - 2.f * ptx::reciprocalFast(1.f + ptx::exp2Fast(2.f * kLog2e * x));
  const float near = x * fmaf(x * x, -1.f / 3.f, 1.f); // where the difference above would cancel
  return fabsf(x) < 0.03f ? near : far;
}

/// cap * tanh x, of twice x in powers of two. Not for small x, of which it would leave few digits.
__device__ __forceinline__ float cappedFar(float cap, float x) {
  return fmaf(-2.f * cap, ptx::reciprocalFast(1.f + ptx::exp2Fast(x)), cap);
}

/// x less a multiple of 2 pi, in [-4, 4], to 3e-7, of x in [-2^24, 2^24]; beyond, any number.
__device__ __forceinline__ float withinTurn(float x) {
  constexpr float kRound = 12582912.f; // has no digits after the point
  const float turns = fmaf(x, 0.15915494f, kRound) - kRound;
  return fmaf(turns, 1.7484556e-7f, fmaf(turns, -6.2831855f, x)); // the first difference is exact
}

/// sin x and cos x to 5e-7. Small sines have few digits then: to ask which are small takes as long as all
/// else.
__device__ __forceinline__ float sinFast(float x) { return __sinf(withinTurn(x)); }
__device__ __forceinline__ float cosFast(float x) { return __cosf(withinTurn(x)); }

/// The quotient rounded down, of a divisor that is neither 0 nor -1.
__device__ __forceinline__ int floorDiv(int a, int b) {
  const int rest = a % b;
  return a / b - (rest != 0 && (rest < 0) != (b < 0) ? 1 : 0);
}

} // namespace deft
