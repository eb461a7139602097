#pragma once

/// Blocks of a cluster (sm_90 and later), which may read each other's shared memory.
namespace deft::ptx {

__device__ __forceinline__ int clusterRank() {
  int rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

/// Until all threads of the cluster have come; what they have written before is seen after.
__device__ __forceinline__ void syncCluster() {
  asm volatile("barrier.cluster.arrive.release.aligned;\n"
               "barrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
}

/// The word at the same place of another block's shared memory.
__device__ __forceinline__ int readOfBlock(const int *mine, int rank) {
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(mine));
  unsigned theirs;
  int value;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(theirs) : "r"(address), "r"(rank));
  asm volatile("ld.shared::cluster.s32 %0, [%1];" : "=r"(value) : "r"(theirs) : "memory");
  return value;
}

} // namespace deft::ptx
