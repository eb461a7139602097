#include "tuner/bench/ProbeKernels.h"

namespace deft::bench {

// On architectures without bulk copies, that entry does nothing and is never launched.
const std::string_view kProbeSource = R"cuda(
#include "deft/ptx/block.cuh"
#include "deft/ptx/cp_async.cuh"
#include "deft/ptx/mbarrier.cuh"
#include "deft/ptx/mma_sync.cuh"
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#include "deft/ptx/wgmma.cuh"
#endif

using namespace deft;
using u64 = unsigned long long;

__device__ __forceinline__ unsigned scramble(unsigned x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

/// Two values of f16 between -1 and 1 with random mantissas: matrix units are slower on these than on zeros.
__device__ __forceinline__ unsigned smallPair(unsigned seed) { return (scramble(seed) & 0x83ff83ffu) | 0x38003800u; }

extern "C" __global__ void probe_empty() {}

extern "C" __global__ void __launch_bounds__(512) probe_fill(uint4 *buffer, u64 bytes) {
  const u64 step = (u64)gridDim.x * blockDim.x;
  for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < bytes / 16; i += step) {
    const unsigned seed = (unsigned)i * 4;
    buffer[i] = make_uint4(scramble(seed), scramble(seed + 1), scramble(seed + 2), scramble(seed + 3));
  }
}

__device__ __forceinline__ uint4 load16(const uint4 *from) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(from));
  return v;
}

/// The sum is stored if it has one value of 2^32, so that the loads are not dropped.
extern "C" __global__ void __launch_bounds__(512) probe_loads(const uint4 *buffer, u64 bytes, unsigned *sink) {
  constexpr int kAtOnce = 8;
  const u64 step = (u64)gridDim.x * blockDim.x, count = bytes / 16;
  unsigned sum = 0;
  u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  for (; i + (kAtOnce - 1) * step < count; i += kAtOnce * step) {
    uint4 v[kAtOnce];
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j)
      v[j] = load16(buffer + i + j * step);
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j)
      sum += v[j].x ^ v[j].y ^ v[j].z ^ v[j].w;
  }
  for (; i < count; i += step) {
    const uint4 v = load16(buffer + i);
    sum += v.x ^ v.y ^ v.z ^ v.w;
  }
  if (sum == 0x9e3779b9u)
    *sink = sum;
}

/// One thread a block keeps `stages` copies of `chunk` bytes in flight; block b copies chunks b, b + grid, ...
extern "C" __global__ void __launch_bounds__(32) probe_bulk(const char *buffer, u64 bytes, int chunk, int stages) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ __align__(128) char shared[];
  if (threadIdx.x != 0)
    return;
  const unsigned ring = ptx::sharedAddress(shared), barriers = ring + chunk * stages;
  for (int s = 0; s < stages; ++s)
    ptx::mbarrierInit(barriers + 8 * s, 1);
  ptx::mbarrierInitFence();
  const int chunks = (int)(bytes / chunk), grid = (int)gridDim.x, first = (int)blockIdx.x;
  const int own = first < chunks ? (chunks - first + grid - 1) / grid : 0;
  int stage = 0, parity = 1; // of the stage's copy before; there was none in the first turn
  for (int i = 0; i < own + stages; ++i) {
    const unsigned barrier = barriers + 8 * stage;
    if (i >= stages && i - stages < own)
      ptx::mbarrierWait(barrier, parity);
    if (i < own) {
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(chunk) : "memory");
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                       ring + stage * chunk),
                   "l"(buffer + (u64)(first + (long long)i * grid) * chunk), "r"(chunk), "r"(barrier)
                   : "memory");
    }
    if (++stage == stages) {
      stage = 0;
      parity ^= 1;
    }
  }
#endif
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
template <class Element> __device__ __forceinline__ float products(unsigned operand, int rounds) {
  float c[16][4] = {};
  unsigned a[4][4];
  for (int k = 0; k < 4; ++k)
    for (int i = 0; i < 4; ++i)
      a[k][i] = smallPair(threadIdx.x * 16 + k * 4 + i);
  for (int round = 0; round < rounds; ++round) {
    ptx::wgmmaPin(c);
    ptx::wgmmaFence();
#pragma unroll
    for (int k = 0; k < 4; ++k)
      ptx::Wgmma<Element, 128>::template step<false>(c, a[k], ptx::wgmmaDescriptor(operand + 32 * k, 0), true);
    ptx::wgmmaCommit();
    ptx::wgmmaWait<0>();
    ptx::wgmmaPin(c);
  }
  float sum = 0;
  for (int n = 0; n < 16; ++n)
    for (int i = 0; i < 4; ++i)
      sum += c[n][i];
  return sum;
}
#else
template <class Element> __device__ __forceinline__ float products(unsigned, int rounds) {
  float c[16][4] = {};
  unsigned a[4];
  for (int i = 0; i < 4; ++i)
    a[i] = smallPair(threadIdx.x * 4 + i);
  const unsigned b0 = smallPair(threadIdx.x + 7777), b1 = smallPair(threadIdx.x + 8888);
  for (int round = 0; round < rounds; ++round)
#pragma unroll
    for (int k = 0; k < 4; ++k)
#pragma unroll
      for (int n = 0; n < 16; ++n)
        ptx::mma16816<Element>(c[n], a, b0, b1);
  float sum = 0;
  for (int n = 0; n < 16; ++n)
    for (int i = 0; i < 4; ++i)
      sum += c[n][i];
  return sum;
}
#endif

/// Products of operands that stay where they are: what the matrix units alone can do.
extern "C" __global__ void __launch_bounds__(384, 1) probe_matrix(float *sink, int rounds, int isBf16) {
  extern __shared__ __align__(128) char shared[];
  const unsigned begin = (ptx::sharedAddress(shared) + 1023) & ~1023u;
  for (unsigned i = threadIdx.x; i < 32 * 1024 / 4; i += blockDim.x)
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(begin + 4 * i), "r"(smallPair(i)) : "memory");
#if __CUDA_ARCH__ >= 900
  ptx::fenceAsyncProxy();
#endif
  __syncthreads();
  const float sum = isBf16 ? products<bf16>(begin, rounds) : products<f16>(begin, rounds);
  if (sum == 12345.678f)
    *sink = sum;
}
)cuda";

} // namespace deft::bench
