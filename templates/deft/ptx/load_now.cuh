#pragma once

namespace deft::ptx {

/// A load that stays where it stands: the compiler would move it to its first use, behind a branch and a wait
/// for the load before.
__device__ __forceinline__ float4 loadNow(const float4 *from) {
  float4 value;
  asm volatile("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
               : "l"(from)
               : "memory");
  return value;
}

} // namespace deft::ptx
