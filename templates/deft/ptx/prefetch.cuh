#pragma once

namespace deft::ptx {

/// Brings the line at an address of global memory as far as L2.
__device__ __forceinline__ void prefetch(const void *line) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(line));
}

} // namespace deft::ptx
