#pragma once

#include "deft/sm90/run_window.cuh"

namespace deft::sm90_latent {

/// An item's runs, 32 at a time, one a lane, to find tiles of 64 tokens. Most tiles lie in one run, which
/// takes a few instructions.
class TileRuns {
public:
  __device__ __forceinline__ TileRuns(const abi::Run *runs, int count, int lane)
      : runs_(runs), count_(count), lane_(lane) {
    load();
  }

  /// The tokens first + lane and first + 32 + lane, or `last` if it comes before. `first` may only rise from
  /// call to call.
  __device__ __forceinline__ void find(int first, int last, sm90::Token (&token)[2]) {
    while (base_ + 32 < count_ && __shfl_sync(~0u, begin_ + tokens_, 31) <= first) {
      base_ += 32;
      load();
    }
    const int run = __popc(__ballot_sync(~0u, begin_ <= first)) - 1;
    const int begin = __shfl_sync(~0u, begin_, run), tokens = __shfl_sync(~0u, tokens_, run);
    const int location = __shfl_sync(~0u, location_, run), position = __shfl_sync(~0u, position_, run);
    const int depth = __shfl_sync(~0u, depth_, run);
    const unsigned viewers = __shfl_sync(~0u, viewers_, run);
    if (min(first + 63, last) < begin + tokens) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int into = min(first + half * 32 + lane_, last) - begin;
        token[half].place = location + into;
        token[half].position = position + into;
        token[half].depth = depth;
        token[half].visible = sm90::visibleAt(viewers, into);
      }
    } else {
      sm90::RunWindow runs(runs_ + base_, count_ - base_, lane_);
      token[0] = runs.find(first, last);
      token[1] = runs.find(first + 32, last);
    }
  }

private:
  __device__ __forceinline__ void load() {
    const int at = base_ + lane_;
    begin_ = 0x7fffffff; // a lane without a run
    tokens_ = location_ = position_ = depth_ = 0;
    viewers_ = 0;
    if (at < count_) {
      const int4 *from = reinterpret_cast<const int4 *>(runs_ + at);
      const int4 low = from[0], high = from[1];
      begin_ = low.x;
      tokens_ = low.y;
      location_ = low.z;
      position_ = low.w;
      depth_ = high.x;
      viewers_ = sm90::viewersOf(high.y, high.z, sm90::hasSlope(high.w));
    }
  }

  const abi::Run *runs_;
  int count_, lane_;
  int base_ = 0;
  int begin_, tokens_, location_, position_, depth_;
  unsigned viewers_;
};

} // namespace deft::sm90_latent
