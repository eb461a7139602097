#pragma once

namespace deft::ptx {

/// Prefetches the line at an address of global memory to L2.
__device__ __forceinline__ void prefetch(const void *line) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(line));
}

} // namespace deft::ptx
