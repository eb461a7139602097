#pragma once

/// Loads that no compiler moves past stores or each other (ptxas may; see the notes about it in
/// docs/kernels.md).
namespace deft::ptx {

__device__ __forceinline__ uint4 loadNow(const uint4 *from) {
  uint4 value;
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "l"(from)
               : "memory");
  return value;
}

__device__ __forceinline__ float loadNow(const float *from) {
  float value;
  asm volatile("ld.global.f32 %0, [%1];" : "=f"(value) : "l"(from) : "memory");
  return value;
}

} // namespace deft::ptx
