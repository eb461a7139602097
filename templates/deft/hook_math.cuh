#pragma once

#include "deft/ptx/convert.cuh"

/// Functions for scores that are cheaper than those of the toolkit.
namespace deft {

/// tanh x to a relative error of 1e-5, without the branch of tanhf.
__device__ __forceinline__ float tanhFast(float x) {
  const float far = 1.f - 2.f * ptx::reciprocalFast(1.f + ptx::exp2Fast(2.f * kLog2e * x));
  const float near = x * fmaf(x * x, -1.f / 3.f, 1.f); // here the difference above would cancel
  return fabsf(x) < 0.03f ? near : far;
}

/// cap * tanh, where x is twice the argument times log2(e). Not for small x, where few digits would be left.
__device__ __forceinline__ float cappedFar(float cap, float x) {
  return fmaf(-2.f * cap, ptx::reciprocalFast(1.f + ptx::exp2Fast(x)), cap);
}

/// x minus a multiple of 2 pi, in [-4, 4], to 3e-7, for x in [-2^24, 2^24]; beyond that, any number.
__device__ __forceinline__ float withinTurn(float x) {
  constexpr float kRound = 12582912.f; // adding it removes the digits after the point
  const float turns = fmaf(x, 0.15915494f, kRound) - kRound;
  return fmaf(turns, 1.7484556e-7f, fmaf(turns, -6.2831855f, x)); // the first difference is exact
}

/// sin x and cos x to 5e-7. Small sines have few correct digits: testing for them would take as long as all
/// the rest.
__device__ __forceinline__ float sinFast(float x) { return __sinf(withinTurn(x)); }
__device__ __forceinline__ float cosFast(float x) { return __cosf(withinTurn(x)); }

/// The quotient rounded down; the divisor must not be 0 or -1.
__device__ __forceinline__ int floorDiv(int a, int b) {
  const int rest = a % b;
  return a / b - (rest != 0 && (rest < 0) != (b < 0) ? 1 : 0);
}

} // namespace deft
