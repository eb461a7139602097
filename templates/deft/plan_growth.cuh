#pragma once

#include "deft/abi.h"

/// One launch per step, before its layers: it updates the plan on the device to the current lengths of its
/// requests, like plan::advance on the host. Runs that end with a grown leaf get its tokens, the later runs
/// of the item begin later, and queries see further.
namespace deft {

class PlanGrowth {
public:
  static constexpr int kThreads = 128; ///< of a block

  __device__ __forceinline__ explicit PlanGrowth(const abi::GrowArgs &args) : args_(args) {}

  /// Called by all threads of the launch: a warp for each item, a thread for each query.
  __device__ __forceinline__ void grow() const {
    const int thread = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
    const int warp = thread / 32;
    if (warp < args_.mostItems) // the same for all lanes
      if (const int item = args_.growingItems[warp]; item >= 0)
        growItem(args_.items[item], thread % 32);
    if (thread < args_.mostQueries)
      growQuery(thread);
  }

private:
  /// The tokens that a leaf has gained, limited to those that the plan supports.
  __device__ __forceinline__ int gainOf(int leaf) const {
    const abi::GrowingLeaf planned = args_.leaves[leaf];
    return min(max(args_.lengths[planned.request] - planned.length, 0), planned.mostGain);
  }

  /// The same for the leaf's last run. If this rank holds all new tokens of the leaf, `reserved` is 0.
  /// Otherwise bit i says whether this rank holds the i-th token, and the limit is 31 tokens.
  __device__ __forceinline__ int heldGainOf(int leaf) const {
    const int gain = gainOf(leaf);
    const auto held = static_cast<unsigned>(args_.leaves[leaf].reserved);
    return held == 0 ? gain : __popc(held & ((1u << gain) - 1));
  }

  __device__ __forceinline__ void growItem(abi::Item &item, int lane) const {
    const int runCount = item.runCount, runBegin = item.runBegin;
    int tokens = 0; // of the item before the current runs
    for (int first = 0; first < runCount; first += 32) {
      const int at = runBegin + first + lane;
      int own = 0;
      if (first + lane < runCount) {
        const abi::Grown run = args_.grownRuns[at];
        own = run.planned + (run.leaf >= 0 ? heldGainOf(run.leaf) : 0);
      }
      int end = own; // of the run, within the current ones
#pragma unroll
      for (int distance = 1; distance < 32; distance *= 2) {
        const int before = __shfl_up_sync(~0u, end, distance);
        end += lane >= distance ? before : 0;
      }
      if (first + lane < runCount) {
        args_.runs[at].begin = tokens + end - own;
        args_.runs[at].tokens = own;
      }
      tokens += __shfl_sync(~0u, end, 31);
    }
    __syncwarp(); // other lanes wrote runs that are read below
    if (item.dealtTiles > 0)
      deal(item, runBegin, tokens, lane);
    if (lane == 0)
      item.tokens = tokens;
  }

  /// Counts the dealt tokens, like plan::countDealt. Each of the first four runs tells where the runs of one
  /// warp begin.
  __device__ __forceinline__ void deal(abi::Item &item, int runBegin, int tokens, int lane) const {
    constexpr int kWarps = 4, kGroup = 16;
    const abi::Run *const runs = args_.runs + runBegin;
    const int begin = lane < kWarps ? runs[runs[lane].dealtBegin].begin : tokens;
    int most = __shfl_sync(~0u, begin, (lane + 1) % 32) - begin;
    most = lane < kWarps ? most : 0;
#pragma unroll
    for (int distance = 1; distance < kWarps; distance *= 2)
      most = max(most, __shfl_xor_sync(~0u, most, distance));
    if (lane == 0) {
      item.commonTokens = begin;
      item.dealtTiles = (most + kGroup - 1) / kGroup;
    }
  }

  __device__ __forceinline__ void growQuery(int query) const {
    const abi::Grown planned = args_.grownQueries[query];
    if (planned.leaf < 0)
      return;
    args_.queryPos[query] = planned.planned + gainOf(planned.leaf);
    const abi::GrowingLeaf leaf = args_.leaves[planned.leaf];
    const int length = args_.lengths[leaf.request];
    if (length < leaf.length || length - leaf.length > leaf.mostGain)
      *args_.unserved = static_cast<unsigned long long>(static_cast<unsigned>(length)) << 32 |
                        static_cast<unsigned>(leaf.request + 1);
  }

  const abi::GrowArgs &args_;
};

} // namespace deft
