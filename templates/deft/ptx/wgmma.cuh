#pragma once

#include "deft/types.cuh"

/// wgmma (sm_90a): a warpgroup computes c += a * b with a in registers or shared memory, b in shared memory
/// and float32 sums. A warp's accumulator has the layout of mma.sync: rows 16 * warp + lane / 4 (+ 8),
/// columns 8 n + 2 (lane % 4) (+ 1).
namespace deft::ptx {

/// The descriptor of a matrix in shared memory, with rows of 128 bytes swizzled in groups of eight (1024
/// bytes). `leading`: the distance between blocks of 64 columns if the matrix is read transposed.
__device__ __forceinline__ unsigned long long wgmmaDescriptor(unsigned shared, unsigned leading) {
  return static_cast<unsigned long long>((shared & 0x3ffff) >> 4) |
         static_cast<unsigned long long>(leading >> 4) << 16 |
         static_cast<unsigned long long>(1024 >> 4) << 32 | 1ull << 62;
}

__device__ __forceinline__ void wgmmaFence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmmaCommit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int kPending> __device__ __forceinline__ void wgmmaWait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

/// Pins accumulators to this point. The compiler does not know that wgmma writes them until wgmmaWait; it
/// might move or spill them earlier. Call it after every wait, before the first use.
template <int kTiles> __device__ __forceinline__ void wgmmaPin(float (&c)[kTiles][4]) {
#pragma unroll
  for (int n = 0; n < kTiles; ++n)
    asm volatile("" : "+f"(c[n][0]), "+f"(c[n][1]), "+f"(c[n][2]), "+f"(c[n][3])::"memory");
}

/// One k-step of 16 with kN columns. `kTransposed`: the columns of b are contiguous (V). `accumulate`: false
/// starts from zero.
template <class Element, int kN> struct Wgmma;

// An asm statement names each of its registers, so every width is spelled out. The element types differ only
// in a word of the instruction.
// clang-format off
#define DEFT_ROW(c, n) "+f"(c[n][0]), "+f"(c[n][1]), "+f"(c[n][2]), "+f"(c[n][3])
#define DEFT_ROWS2(c, n) DEFT_ROW(c, n), DEFT_ROW(c, n + 1)
#define DEFT_ROWS4(c, n) DEFT_ROWS2(c, n), DEFT_ROWS2(c, n + 2)
#define DEFT_ROWS8(c, n) DEFT_ROWS4(c, n), DEFT_ROWS4(c, n + 4)
#define DEFT_WGMMA(ELEMENT, N, REGISTERS, OPERANDS, ACCUMULATE, ...)                                           \
  template <> struct Wgmma<ELEMENT, N> {                                                                       \
    template <bool kTransposed>                                                                                \
    static __device__ __forceinline__ void step(float (&c)[N / 8][4], const unsigned (&a)[4],                  \
                                                unsigned long long b, bool accumulate) {                       \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " ACCUMULATE ", 0;\n"                                     \
                   "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." #ELEMENT "." #ELEMENT                      \
                   " {" REGISTERS "}, " OPERANDS ";\n}"                                                        \
                   : __VA_ARGS__                                                                               \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b),                                       \
                     "r"(static_cast<int>(accumulate)), "n"(static_cast<int>(kTransposed)));                   \
    }                                                                                                          \
  };
#define DEFT_WGMMA_WIDTHS(ELEMENT)                                                                             \
  DEFT_WGMMA(ELEMENT, 16,                                                                                      \
    "%0, %1, %2, %3, %4, %5, %6, %7",                                                                          \
    "{%8, %9, %10, %11}, %12, p, 1, 1, %14", "%13",                                                            \
    DEFT_ROWS2(c, 0))                                                                                          \
  DEFT_WGMMA(ELEMENT, 32,                                                                                      \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15",                                    \
    "{%16, %17, %18, %19}, %20, p, 1, 1, %22", "%21",                                                          \
    DEFT_ROWS4(c, 0))                                                                                          \
  DEFT_WGMMA(ELEMENT, 48,                                                                                      \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                                   \
    "%16, %17, %18, %19, %20, %21, %22, %23",                                                                  \
    "{%24, %25, %26, %27}, %28, p, 1, 1, %30", "%29",                                                          \
    DEFT_ROWS4(c, 0), DEFT_ROWS2(c, 4))                                                                        \
  DEFT_WGMMA(ELEMENT, 64,                                                                                      \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                                   \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31",                          \
    "{%32, %33, %34, %35}, %36, p, 1, 1, %38", "%37",                                                          \
    DEFT_ROWS8(c, 0))                                                                                          \
  DEFT_WGMMA(ELEMENT, 128,                                                                                     \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                                   \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "                         \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "                         \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63",                          \
    "{%64, %65, %66, %67}, %68, p, 1, 1, %70", "%69",                                                          \
    DEFT_ROWS8(c, 0), DEFT_ROWS8(c, 8))                                                                        
DEFT_WGMMA_WIDTHS(f16)
DEFT_WGMMA_WIDTHS(bf16)
#undef DEFT_WGMMA_WIDTHS
#undef DEFT_WGMMA

/// Wgmma with 64 rows of a in shared memory, as a descriptor; 64 columns.
template <class Element> struct WgmmaOfShared;
#define DEFT_WGMMA_OF_SHARED(ELEMENT)                                                                          \
  template <> struct WgmmaOfShared<ELEMENT> {                                                                  \
    static __device__ __forceinline__ void step(float (&c)[8][4], unsigned long long a, unsigned long long b,  \
                                                bool accumulate) {                                             \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"                                                \
                   "wgmma.mma_async.sync.aligned.m64n64k16.f32." #ELEMENT "." #ELEMENT                         \
                   " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                  \
                   "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "         \
                   "%32, %33, p, 1, 1, 0, 0;\n}"                                                               \
                   : DEFT_ROWS8(c, 0)                                                                          \
                   : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)));                                       \
    }                                                                                                          \
  };
DEFT_WGMMA_OF_SHARED(f16)
DEFT_WGMMA_OF_SHARED(bf16)
#undef DEFT_WGMMA_OF_SHARED

/// Wgmma with both matrices in shared memory; 16 columns. `kTransposed`: the rows of a are contiguous.
template <class Element> struct WgmmaOfFew;
#define DEFT_WGMMA_OF_FEW(ELEMENT)                                                                             \
  template <> struct WgmmaOfFew<ELEMENT> {                                                                     \
    template <bool kTransposed>                                                                                \
    static __device__ __forceinline__ void step(float (&c)[2][4], unsigned long long a, unsigned long long b,  \
                                                bool accumulate) {                                             \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %10, 0;\n"                                                \
                   "wgmma.mma_async.sync.aligned.m64n16k16.f32." #ELEMENT "." #ELEMENT                         \
                   " {%0, %1, %2, %3, %4, %5, %6, %7}, %8, %9, p, 1, 1, %11, 0;\n}"                            \
                   : DEFT_ROWS2(c, 0)                                                                          \
                   : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)),                                        \
                     "n"(static_cast<int>(kTransposed)));                                                      \
    }                                                                                                          \
  };
DEFT_WGMMA_OF_FEW(f16)
DEFT_WGMMA_OF_FEW(bf16)
#undef DEFT_WGMMA_OF_FEW
#undef DEFT_ROWS8
#undef DEFT_ROWS4
#undef DEFT_ROWS2
#undef DEFT_ROW
// clang-format on

} // namespace deft::ptx
