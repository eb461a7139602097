#pragma once

#include "tests/device/Block.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>

/// CUDA's words for the host's compiler, as far as templates/deft says them. To be included before any of its
/// headers, and by tests only: the words stand in the global namespace.

#define __device__
#define __host__
#define __forceinline__ inline
#define __shared__ static

inline const deft::test::Index &threadIdx = deft::test::place.thread;
inline const deft::test::Index &blockIdx = deft::test::place.block;
inline const deft::test::Index &gridDim = deft::test::place.blocks;

// --- vectors: aligned as a GPU wants them, so that a sanitizer sees one that is not -----------------------

struct alignas(8) int2 {
  int x, y;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) int4 {
  int x, y, z, w;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

// --- arithmetic ------------------------------------------------------------------------------------------

inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }
inline unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
inline unsigned max(unsigned a, unsigned b) { return a > b ? a : b; }
using std::fabs;
using std::fma;
inline float __fdividef(float a, float b) { return a / b; }
inline float __sinf(float a) { return std::sin(a); }
inline float __cosf(float a) { return std::cos(a); }
inline int __float_as_int(float a) { return std::bit_cast<int>(a); }
inline float __int_as_float(int a) { return std::bit_cast<float>(a); }
inline float __uint_as_float(unsigned a) { return std::bit_cast<float>(a); }
inline unsigned __float_as_uint(float a) { return std::bit_cast<unsigned>(a); }
inline int __popc(unsigned a) { return std::popcount(a); }
inline int __clz(int a) { return std::countl_zero(static_cast<unsigned>(a)); }
inline int __ffs(int a) { return a == 0 ? 0 : std::countr_zero(static_cast<unsigned>(a)) + 1; }

// --- a warp's lanes meet ---------------------------------------------------------------------------------

namespace deft::test {

/// All lanes' values; templates ask whole warps only.
template <class T> Lanes<T> meetAll(const char *word, unsigned mask, const T &mine) {
  if (mask != ~0u)
    Block::now().fail(std::string(word) + " of a part of a warp");
  return Block::now().meet(word, mine);
}

template <class T, class F> T reduceLanes(const char *word, unsigned mask, T mine, F &&join) {
  const Lanes<T> lanes = meetAll(word, mask, mine);
  T result = lanes[0];
  for (unsigned lane = 1; lane < Block::kLanes; ++lane)
    result = join(result, lanes[lane]);
  return result;
}

} // namespace deft::test

/// Threads take turns where they wait, so nobody comes between.
inline int atomicMax(int *at, int mine) { return std::exchange(*at, std::max(*at, mine)); }
inline unsigned atomicMax(unsigned *at, unsigned mine) { return std::exchange(*at, std::max(*at, mine)); }
inline int atomicMin(int *at, int mine) { return std::exchange(*at, std::min(*at, mine)); }
inline unsigned atomicOr(unsigned *at, unsigned mine) { return std::exchange(*at, *at | mine); }
inline int atomicCAS(int *at, int wanted, int mine) { return std::exchange(*at, *at == wanted ? mine : *at); }
inline int atomicAdd(int *at, int mine) { return std::exchange(*at, *at + mine); }

inline void __syncthreads() { deft::test::Block::now().syncThreads(); }
inline void __syncwarp() { deft::test::Block::now().meet("__syncwarp"); }

template <class T> T __shfl_sync(unsigned mask, T mine, int lane) {
  return deft::test::meetAll("__shfl_sync", mask, mine)[static_cast<unsigned>(lane)];
}
template <class T> T __shfl_xor_sync(unsigned mask, T mine, int bits) {
  return deft::test::meetAll("__shfl_xor_sync", mask,
                             mine)[deft::test::Block::lane() ^ static_cast<unsigned>(bits)];
}
/// The first lanes keep what they have.
template <class T> T __shfl_up_sync(unsigned mask, T mine, unsigned distance) {
  const unsigned lane = deft::test::Block::lane();
  return deft::test::meetAll("__shfl_up_sync", mask, mine)[lane < distance ? lane : lane - distance];
}
inline unsigned __ballot_sync(unsigned mask, bool mine) {
  const auto lanes = deft::test::meetAll("__ballot_sync", mask, mine);
  unsigned bits = 0;
  for (unsigned lane = 0; lane < deft::test::Block::kLanes; ++lane)
    bits |= static_cast<unsigned>(lanes[lane]) << lane;
  return bits;
}
inline bool __any_sync(unsigned mask, bool mine) {
  return deft::test::reduceLanes("__any_sync", mask, mine, [](bool a, bool b) { return a || b; });
}
inline bool __all_sync(unsigned mask, bool mine) {
  return deft::test::reduceLanes("__all_sync", mask, mine, [](bool a, bool b) { return a && b; });
}
template <class T> T __reduce_add_sync(unsigned mask, T mine) {
  return deft::test::reduceLanes("__reduce_add_sync", mask, mine, [](T a, T b) { return a + b; });
}
template <class T> T __reduce_min_sync(unsigned mask, T mine) {
  return deft::test::reduceLanes("__reduce_min_sync", mask, mine, [](T a, T b) { return a < b ? a : b; });
}
template <class T> T __reduce_or_sync(unsigned mask, T mine) {
  return deft::test::reduceLanes("__reduce_or_sync", mask, mine, [](T a, T b) { return a | b; });
}
template <class T> T __reduce_and_sync(unsigned mask, T mine) {
  return deft::test::reduceLanes("__reduce_and_sync", mask, mine, [](T a, T b) { return a & b; });
}
template <class T> T __reduce_max_sync(unsigned mask, T mine) {
  return deft::test::reduceLanes("__reduce_max_sync", mask, mine, [](T a, T b) { return a > b ? a : b; });
}
