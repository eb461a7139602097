#pragma once

namespace deft::ptx {

/// A load that no compiler moves past a store or another of them (ptxas may; see its notes in
/// docs/kernels.md).
__device__ __forceinline__ float loadNow(const float *from) {
  float value;
  asm volatile("ld.global.f32 %0, [%1];" : "=f"(value) : "l"(from) : "memory");
  return value;
}

} // namespace deft::ptx
