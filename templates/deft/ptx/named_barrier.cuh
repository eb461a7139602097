#pragma once

/// Barriers among some of a block's warps. __syncthreads uses number 0.
namespace deft::ptx {

__device__ __forceinline__ void namedBarrierSync(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

/// Counts the caller without stopping it.
__device__ __forceinline__ void namedBarrierArrive(int barrier, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

/// Without a branch, so that they can be placed between products in flight.
__device__ __forceinline__ void namedBarrierSyncIf(bool condition, int barrier, int threads) {
  asm volatile("{\n.reg .pred p;\nsetp.ne.s32 p, %2, 0;\n@p bar.sync %0, %1;\n}" ::"r"(barrier), "r"(threads),
               "r"(static_cast<int>(condition))
               : "memory");
}
__device__ __forceinline__ void namedBarrierArriveIf(bool condition, int barrier, int threads) {
  asm volatile("{\n.reg .pred p;\nsetp.ne.s32 p, %2, 0;\n@p bar.arrive %0, %1;\n}" ::"r"(barrier),
               "r"(threads), "r"(static_cast<int>(condition))
               : "memory");
}

} // namespace deft::ptx
