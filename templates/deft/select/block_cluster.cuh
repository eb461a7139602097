#pragma once

#include "deft/ptx/cluster.cuh"

/// The blocks that choose a list together, if they form a cluster. Even a few lists then occupy many
/// multiprocessors, and the keys stay in shared memory. Launch the kernel with clusters of kCount blocks.
namespace deft::select {

template <int kCount> struct BlockCluster {
  static constexpr int kBlocks = kCount;
  static __device__ __forceinline__ int rank() { return ptx::clusterRank(); }
  static __device__ __forceinline__ void sync() { ptx::syncCluster(); }
  static __device__ __forceinline__ int read(const int *mine, int rank) {
    return ptx::readOfBlock(mine, rank);
  }
};

} // namespace deft::select
