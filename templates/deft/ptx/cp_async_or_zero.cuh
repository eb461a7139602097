#pragma once

/// cp.async (sm_80) that may write zeros in place of a copy.
namespace deft::ptx {

/// Where there is nothing to copy, `global` is not read.
__device__ __forceinline__ void cpAsync16OrZero(unsigned shared, const void *global, bool isThere) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(global),
               "r"(isThere ? 16 : 0)
               : "memory");
}

} // namespace deft::ptx
