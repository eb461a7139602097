#pragma once

#include "deft/types.cuh"

/// Conversions from float32, and the fast base-2 functions.
namespace deft::ptx {

/// Two floats, rounded to nearest even, `low` in the low half.
template <class Element> __device__ __forceinline__ unsigned pack2(float low, float high);

template <> __device__ __forceinline__ unsigned pack2<f16>(float low, float high) {
  unsigned r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}

template <> __device__ __forceinline__ unsigned pack2<bf16>(float low, float high) {
  unsigned r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}

/// 2^x to 2 ulp; -inf gives 0.
__device__ __forceinline__ float exp2Fast(float x) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

/// 1 / x to 1 ulp; infinity gives 0.
__device__ __forceinline__ float reciprocalFast(float x) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

/// log2(x) to about 1e-7 absolute; 0 gives -inf.
__device__ __forceinline__ float log2Fast(float x) {
  float r;
  asm("lg2.approx.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

} // namespace deft::ptx
