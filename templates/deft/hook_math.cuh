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

/// The quotient rounded down, of a divisor that is neither 0 nor -1.
__device__ __forceinline__ int floorDiv(int a, int b) {
  const int rest = a % b;
  return a / b - (rest != 0 && (rest < 0) != (b < 0) ? 1 : 0);
}

} // namespace deft
