#pragma once

namespace deft::ptx {

/// A load that stays at its place: the compiler would move it to its first use, after a branch and a wait for
/// the previous load.
__device__ __forceinline__ uint2 loadNow(const uint2 *from) {
  uint2 value;
  asm volatile("ld.global.v2.u32 {%0, %1}, [%2];" : "=r"(value.x), "=r"(value.y) : "l"(from) : "memory");
  return value;
}

} // namespace deft::ptx
