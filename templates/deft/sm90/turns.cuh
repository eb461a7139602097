#pragma once

#include "deft/ptx/named_barrier.cuh"
#include "deft/sm90/layout.cuh"

namespace deft::sm90 {

constexpr int kTurn = 1; ///< kTurn + g is the named barrier of warpgroup g

/// Warpgroups that share tiles take turns to start products, one turn per tile, so that one makes weights
/// while the products of the others run.
template <int kGroups> class Turns {
  static_assert(kGroups >= 1 && kGroups <= 3);

public:
  /// If `areTaken` is false, no warpgroup waits.
  __device__ __forceinline__ Turns(bool areTaken, int group, int tiles)
      : areTaken_(areTaken), group_(group), left_(tiles) {
    ptx::namedBarrierArriveIf(areTaken && group == kGroups - 1, kTurn, kThreadsOfTwo);
  }
  __device__ __forceinline__ void begin() const {
    ptx::namedBarrierSyncIf(areTaken_, kTurn + group_, kThreadsOfTwo);
  }
  __device__ __forceinline__ void end() {
    --left_;
    ptx::namedBarrierArriveIf(areTaken_ && (isFollowed() || left_ > 0), kTurn + next(), kThreadsOfTwo);
  }

private:
  static constexpr int kThreadsOfTwo = 128 * 2; ///< of the waiting warpgroup and of the one that releases it

  __device__ __forceinline__ bool isFollowed() const { ///< by another one on the same tile
    return kGroups <= 2 ? group_ == 0 : group_ < kGroups - 1;
  }
  __device__ __forceinline__ int next() const {
    return kGroups <= 2 ? 1 - group_ : group_ < kGroups - 1 ? group_ + 1 : 0;
  }

  const bool areTaken_;
  const int group_;
  int left_;
};

} // namespace deft::sm90
