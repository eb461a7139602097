#pragma once

/// Bulk copies of consecutive bytes (sm_90), by the copy engine: multiples of 16 bytes, from and to multiples
/// of 16.
namespace deft::ptx {

/// Counts the bytes on an mbarrier.
__device__ __forceinline__ void bulkLoad(unsigned shared, const void *global, int bytes, unsigned barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared),
      "l"(global), "r"(bytes), "r"(barrier)
      : "memory");
}

/// Of bytes that a fence to the asynchronous proxy has followed; joins the thread's open group.
__device__ __forceinline__ void bulkStore(void *global, unsigned shared, int bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(global), "r"(shared),
               "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void bulkCommit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

/// Waits until the thread's stores have read shared memory.
__device__ __forceinline__ void bulkAwaitReads() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
/// Waits until they are done.
__device__ __forceinline__ void bulkAwait() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

} // namespace deft::ptx
