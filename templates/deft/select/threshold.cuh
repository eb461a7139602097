#pragma once

#include "deft/select_abi.h"

namespace deft::select {

/// The keys of a list: all above `key`, and the first `equal` ones that equal it; `count` in all.
struct Chosen {
  unsigned key;
  int equal, count;
};

/// Finds the key with as many larger keys as the budget allows, 11 bits at a time from the top. Each pass
/// makes a histogram of these bits, for keys that match the bits found so far, and finds the bin where the
/// budget ends. It stops when a whole bin fits; with distinct scores that mostly takes two passes.
template <class Config> class Threshold {
  using Peers = typename Config::Peers;
  static constexpr int kBits = 11, kBins = 1 << kBits, kPasses = 3;
  static constexpr int kEach = kBins / Config::kThreads; ///< bins for each thread
  static_assert(kBins % Config::kThreads == 0);

public:
  /// Call it, then let all threads of the block wait, before find().
  __device__ __forceinline__ void clear() {
    for (int i = threadIdx.x; i < kPasses * kBins; i += Config::kThreads)
      bins_[i / kBins][i % kBins] = 0;
  }

  /// `key(i)`: key i of the block's `count`. The result is the same in all threads of all blocks.
  template <class Key> __device__ __forceinline__ Chosen find(int budget, int count, Key &&key) {
    unsigned known = 0;
    int left = budget;
#pragma unroll 1
    for (int pass = 0; pass < kPasses; ++pass) {
      const int shift = pass == 0 ? 21 : pass == 1 ? 10 : 0;
      const int bits = pass == 2 ? 10 : kBits;
      int *bins = bins_[pass];
      for (int at = threadIdx.x; at < count; at += Config::kThreads) {
        const unsigned one = key(at);
        if (one != abi::kHiddenKey && (pass == 0 || one >> (shift + bits) == known))
          atomicAdd(&bins[one >> shift & ((1u << bits) - 1u)], 1);
      }
      Peers::sync();
      const int total = findBin(bins, left);
      if (pass == 0 && total <= budget)
        return {abi::kHiddenKey, 0, total};
      known = known << bits | static_cast<unsigned>(bin_);
      left = leftInBin_;
      if (inBin_ == left || pass == kPasses - 1) {
        const unsigned least = known << shift;
        if (inBin_ == left) // a whole bin: takes all from its least key on; hidden keys are in no bin
          return {least > 0 ? least - 1 : abi::kHiddenKey, 0, budget};
        return {known, left, budget};
      }
    }
    return {}; // unreachable: the last pass returns
  }

private:
  /// Finds the bin of the last of `left` keys from the top; returns the total number of keys.
  __device__ __forceinline__ int findBin(const int *bins, int left) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int top = kBins - 1 - kEach * static_cast<int>(threadIdx.x); // the highest of the thread's bins
    int mine[kEach], sum = 0;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      mine[i] = 0;
#pragma unroll
      for (int rank = 0; rank < Peers::kBlocks; ++rank)
        mine[i] += Peers::read(&bins[top - i], rank);
      sum += mine[i];
    }
    int upTo = sum; // the warp's bins from its first down to the thread's last
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      const int other = __shfl_up_sync(~0u, upTo, distance);
      upTo += lane >= distance ? other : 0;
    }
    if (lane == 31)
      ofWarp_[warp] = upTo;
    __syncthreads();
    int above = 0, total = 0;
    for (int w = 0; w < Config::kThreads / 32; ++w) {
      above += w < warp ? ofWarp_[w] : 0;
      total += ofWarp_[w];
    }
    above += upTo - sum;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      if (above < left && left <= above + mine[i]) {
        bin_ = top - i;
        leftInBin_ = left - above;
        inBin_ = mine[i];
      }
      above += mine[i];
    }
    __syncthreads();
    return total;
  }

  int bins_[kPasses][kBins];
  int ofWarp_[32];
  int bin_, leftInBin_, inBin_;
};

} // namespace deft::select
