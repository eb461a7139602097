#pragma once

#include "deft/types.cuh"

/// Conversions from float32 and back, and the fast base-2 functions.
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

/// Two values of a result.
template <class Config>
__device__ __forceinline__ unsigned packResult(bool isPartial, float low, float high) {
  return isPartial ? pack2<Partial<Config>>(low, high) : pack2<typename Config::Output>(low, high);
}

/// The inverse conversion, which is exact.
template <class Element> __device__ __forceinline__ float2 unpack2(unsigned packed);

template <> __device__ __forceinline__ float2 unpack2<f16>(unsigned packed) {
  float2 r;
  asm("{\n"
      ".reg .f16 low, high;\n"
      "mov.b32 {low, high}, %2;\n"
      "cvt.f32.f16 %0, low;\n"
      "cvt.f32.f16 %1, high;\n"
      "}"
      : "=f"(r.x), "=f"(r.y)
      : "r"(packed));
  return r;
}

template <> __device__ __forceinline__ float2 unpack2<bf16>(unsigned packed) {
  return make_float2(__uint_as_float(packed << 16), __uint_as_float(packed & 0xffff0000u));
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
