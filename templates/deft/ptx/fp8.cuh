#pragma once

#include "deft/types.cuh"

/// 8-bit floats as f16, which has every number of both kinds: the conversion is exact.
namespace deft::ptx {

/// Four elements of a register, the first in its low byte, as two registers of two.
template <class Element> __device__ __forceinline__ void toHalves(unsigned four, unsigned (&halves)[2]);

/// Bytes 0 and 1, or 2 and 3, each in the upper half of 16 bits.
__device__ __forceinline__ unsigned raiseLow(unsigned four) { return __byte_perm(four, 0, 0x1404); }
__device__ __forceinline__ unsigned raiseHigh(unsigned four) { return __byte_perm(four, 0, 0x3424); }

/// The upper byte of an f16 is an e5m2.
template <> __device__ __forceinline__ void toHalves<e5m2>(unsigned four, unsigned (&halves)[2]) {
  halves[0] = raiseLow(four);
  halves[1] = raiseHigh(four);
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890

template <> __device__ __forceinline__ void toHalves<e4m3>(unsigned four, unsigned (&halves)[2]) {
  asm("{\n"
      ".reg .b16 low, high;\n"
      "mov.b32 {low, high}, %2;\n"
      "cvt.rn.f16x2.e4m3x2 %0, low;\n"
      "cvt.rn.f16x2.e4m3x2 %1, high;\n"
      "}"
      : "=r"(halves[0]), "=r"(halves[1])
      : "r"(four));
}

#else

/// Before sm_89 by its bits: an e4m3 one place lower is an f16 with 8 taken from the exponent. Its NaN
/// becomes 480, the number that these bits would mean.
__device__ __forceinline__ unsigned fromRaised(unsigned raised) {
  const unsigned shifted = (raised >> 1 & 0x3f803f80u) | (raised & 0x80008000u);
  unsigned r;
  asm("mul.f16x2 %0, %1, %2;" : "=r"(r) : "r"(shifted), "r"(0x5c005c00u)); // 256 each
  return r;
}

template <> __device__ __forceinline__ void toHalves<e4m3>(unsigned four, unsigned (&halves)[2]) {
  halves[0] = fromRaised(raiseLow(four));
  halves[1] = fromRaised(raiseHigh(four));
}

#endif

/// Four bytes of a transposed load, by which a lane has two neighbouring columns of two rows, as pairs of
/// f16: the first column of both rows, and the second.
template <class Element> __device__ __forceinline__ void toColumns(unsigned four, unsigned (&halves)[2]) {
  toHalves<Element>(__byte_perm(four, 0, 0x3120), halves);
}

} // namespace deft::ptx
