#pragma once

/// Blocks of a cluster (sm_90 and later), which can read each other's shared memory.
namespace deft::ptx {

__device__ __forceinline__ int clusterRank() {
  int rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

/// Waits for all threads of the cluster; earlier writes to shared memory are visible afterwards, others need
/// not be. A fence for these as well would wait for the memory of the whole GPU.
__device__ __forceinline__ void syncCluster() {
  asm volatile("fence.release.sync_restrict::shared::cta.cluster;\n"
               "barrier.cluster.arrive.relaxed.aligned;\n"
               "barrier.cluster.wait.acquire.aligned;\n"
               "fence.acquire.sync_restrict::shared::cluster.cluster;" ::
                   : "memory");
}

/// The word at the same place in another block's shared memory.
__device__ __forceinline__ int readOfBlock(const int *mine, int rank) {
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(mine));
  unsigned theirs;
  int value;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(theirs) : "r"(address), "r"(rank));
  asm volatile("ld.shared::cluster.s32 %0, [%1];" : "=r"(value) : "r"(theirs) : "memory");
  return value;
}

} // namespace deft::ptx
