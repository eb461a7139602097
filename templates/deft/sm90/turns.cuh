#pragma once

#include "deft/ptx/named_barrier.cuh"
#include "deft/sm90/layout.cuh"

namespace deft::sm90 {

constexpr int kTurn = 1; ///< kTurn + g is warpgroup g's named barrier

/// The warpgroups that share tiles take turns at starting products, one turn a tile each, so that one makes
/// weights while the other's products run.
class Turns {
public:
  /// Where `areTaken` is not set, nobody waits for anybody.
  __device__ __forceinline__ Turns(bool areTaken, int group, int tiles)
      : areTaken_(areTaken), group_(group), left_(tiles) {
    ptx::namedBarrierArriveIf(areTaken && group == 1, kTurn, kThreadsOfBoth);
  }
  __device__ __forceinline__ void begin() const {
    ptx::namedBarrierSyncIf(areTaken_, kTurn + group_, kThreadsOfBoth);
  }
  __device__ __forceinline__ void end() {
    --left_;
    ptx::namedBarrierArriveIf(areTaken_ && (group_ == 0 || left_ > 0), kTurn + 1 - group_, kThreadsOfBoth);
  }

private:
  static constexpr int kThreadsOfBoth = 128 * 2;
  const bool areTaken_;
  const int group_;
  int left_;
};

} // namespace deft::sm90
