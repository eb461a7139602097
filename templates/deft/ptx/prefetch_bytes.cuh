#pragma once

namespace deft::ptx {

/// Prefetches bytes of global memory, in multiples of 16, to L2 (sm_90).
__device__ __forceinline__ void prefetchBytes(const void *from, unsigned bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes));
}

} // namespace deft::ptx
