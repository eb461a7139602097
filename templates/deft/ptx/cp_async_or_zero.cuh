#pragma once

/// cp.async (sm_80) that may write zeros instead of copying.
namespace deft::ptx {

/// If `isThere` is false, `global` is not read.
__device__ __forceinline__ void cpAsync16OrZero(unsigned shared, const void *global, bool isThere) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(global),
               "r"(isThere ? 16 : 0)
               : "memory");
}

} // namespace deft::ptx
