#pragma once

/// Barriers among some of a block's warps. Number 0 is __syncthreads'.
namespace deft::ptx {

__device__ __forceinline__ void namedBarrierSync(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

/// Counts the caller without stopping it.
__device__ __forceinline__ void namedBarrierArrive(int barrier, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

} // namespace deft::ptx
