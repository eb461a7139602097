#pragma once

#include "deft/abi.h"

/// Bulk tensor copies (sm_90): one thread requests a box of a tensor. The copy engine copies it into shared
/// memory, swizzled, and counts the bytes on an mbarrier.
namespace deft::ptx {

__device__ __forceinline__ void mbarrierExpectBytes(unsigned barrier, int bytes) {
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

/// True in one lane of a full warp. In other branches the assembler emits a loop over lanes for a copy, since
/// its operands are uniform registers; after elect it knows that there is a single lane.
__device__ __forceinline__ bool electOne() {
  unsigned elected;
  asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(elected));
  return elected != 0;
}

/// Prefetches the map, so that the first copy need not wait for it.
__device__ __forceinline__ void prefetch(const abi::TensorMap &map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

__device__ __forceinline__ void tensorCopy(unsigned shared, const abi::TensorMap &map, unsigned barrier,
                                           int c0, int c1, int c2) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
               "[%0], [%1, {%3, %4, %5}], [%2];" ::"r"(shared),
               "l"(&map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2)
               : "memory");
}

__device__ __forceinline__ void tensorCopy(unsigned shared, const abi::TensorMap &map, unsigned barrier,
                                           int c0, int c1, int c2, int c3) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
               "[%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(shared),
               "l"(&map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
               : "memory");
}

__device__ __forceinline__ void tensorCopy(unsigned shared, const abi::TensorMap &map, unsigned barrier,
                                           int c0, int c1, int c2, int c3, int c4) {
  asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
               "[%0], [%1, {%3, %4, %5, %6, %7}], [%2];" ::"r"(shared),
               "l"(&map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4)
               : "memory");
}

} // namespace deft::ptx
