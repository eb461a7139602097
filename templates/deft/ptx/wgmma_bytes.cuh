#pragma once

#include "deft/types.cuh"

/// wgmma of e4m3 (sm_90a): a warpgroup computes c += a * b, 32 deep, with a in registers. b is in shared
/// memory with its depth along rows (see wgmmaDescriptor); 8 bits allow no other layout. The accumulator is
/// that of wgmma.cuh. A lane has bytes 4 (lane % 4) to 4 (lane % 4) + 3 of rows lane / 4 and lane / 4 + 8 of
/// a in its first two registers, and the bytes 16 further on in the other two.
///
/// The tensor cores add with fewer bits than float32, so sums over many steps must be added elsewhere.
namespace deft::ptx {

/// Packs four numbers of magnitudes up to 448, rounded to nearest even, the first in the low byte.
__device__ __forceinline__ unsigned packE4m3(float a, float b, float c, float d) {
  unsigned r;
  asm("{\n"
      ".reg .b16 low, high;\n"
      "cvt.rn.satfinite.e4m3x2.f32 low, %2, %1;\n"
      "cvt.rn.satfinite.e4m3x2.f32 high, %4, %3;\n"
      "mov.b32 %0, {low, high};\n"
      "}"
      : "=r"(r)
      : "f"(a), "f"(b), "f"(c), "f"(d));
  return r;
}

/// The first or the second bytes of the pairs in two registers.
__device__ __forceinline__ unsigned bytesOfPairs(unsigned low, unsigned high, bool areSecond) {
  return __byte_perm(low, high, areSecond ? 0x7531 : 0x6420);
}

/// Loads 8 bytes of shared memory.
__device__ __forceinline__ uint2 loadShared8(unsigned shared) {
  uint2 r;
  asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];" : "=r"(r.x), "=r"(r.y) : "r"(shared) : "memory");
  return r;
}

/// One step with kN columns. `accumulate`: false starts from zero.
template <int kN> struct WgmmaBytes;

// clang-format off
#define DEFT_ROW(c, n) "+f"(c[n][0]), "+f"(c[n][1]), "+f"(c[n][2]), "+f"(c[n][3])
#define DEFT_ROWS4(c, n) DEFT_ROW(c, n), DEFT_ROW(c, n + 1), DEFT_ROW(c, n + 2), DEFT_ROW(c, n + 3)
#define DEFT_WGMMA_BYTES(N, REGISTERS, OPERANDS, ACCUMULATE, ...)                                              \
  template <> struct WgmmaBytes<N> {                                                                           \
    static __device__ __forceinline__ void step(float (&c)[N / 8][4], const unsigned (&a)[4],                  \
                                                unsigned long long b, bool accumulate) {                       \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " ACCUMULATE ", 0;\n"                                     \
                   "wgmma.mma_async.sync.aligned.m64n" #N "k32.f32.e4m3.e4m3"                                  \
                   " {" REGISTERS "}, " OPERANDS ", p, 1, 1;\n}"                                               \
                   : __VA_ARGS__                                                                               \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b),                                       \
                     "r"(static_cast<int>(accumulate)));                                                       \
    }                                                                                                          \
  };
DEFT_WGMMA_BYTES(32,
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15",
  "{%16, %17, %18, %19}, %20", "%21",
  DEFT_ROWS4(c, 0))
DEFT_WGMMA_BYTES(64,
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31",
  "{%32, %33, %34, %35}, %36", "%37",
  DEFT_ROWS4(c, 0), DEFT_ROWS4(c, 4))
#undef DEFT_WGMMA_BYTES
#undef DEFT_ROWS4
#undef DEFT_ROW
// clang-format on

} // namespace deft::ptx
