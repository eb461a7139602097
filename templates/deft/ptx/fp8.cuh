#pragma once

#include "deft/types.cuh"

/// Conversion of 8-bit floats to f16, which represents every value of both types exactly.
namespace deft::ptx {

/// Converts a register of four elements, the first in its low byte, into two registers of two.
template <class Element> __device__ __forceinline__ void toHalves(unsigned four, unsigned (&halves)[2]);

/// Moves bytes 0 and 1, or 2 and 3, each into the upper half of 16 bits.
__device__ __forceinline__ unsigned raiseLow(unsigned four) { return __byte_perm(four, 0, 0x1404); }
__device__ __forceinline__ unsigned raiseHigh(unsigned four) { return __byte_perm(four, 0, 0x3424); }

/// An e5m2 is the upper byte of an f16.
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

/// Before sm_89, by bit operations: an e4m3, shifted right by one, is an f16 whose exponent is too small by
/// 8. Its NaN becomes 480, the value that these bits would represent.
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

/// After a transposed load, a lane's four bytes are two neighbouring columns of two rows. Converts them to
/// pairs of f16: the first column of both rows, and the second column.
template <class Element> __device__ __forceinline__ void toColumns(unsigned four, unsigned (&halves)[2]) {
  toHalves<Element>(__byte_perm(four, 0, 0x3120), halves);
}

} // namespace deft::ptx
