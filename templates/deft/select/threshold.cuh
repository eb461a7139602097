#pragma once

#include "deft/select_abi.h"

namespace deft::select {

/// Which keys are in a list: those above `key`, and the first `equal` ones at it; `count` in all.
struct Chosen {
  unsigned key;
  int equal, count;
};

/// Finds the key that as many are above as the budget allows, 11 bits at a time from the top: a histogram of
/// these bits of the keys that agree with what is known, and in it the bin where the budget ends. Done as
/// soon as a bin is in as a whole; of scores that differ that is mostly so after two.
template <class Config> class Threshold {
  using Peers = typename Config::Peers;
  static constexpr int kBits = 11, kBins = 1 << kBits, kPasses = 3;
  static constexpr int kEach = kBins / Config::kThreads; ///< bins of a thread
  static_assert(kBins % Config::kThreads == 0);

public:
  /// To be called, and all threads of the block to wait, before find().
  __device__ __forceinline__ void clear() {
    for (int i = threadIdx.x; i < kPasses * kBins; i += Config::kThreads)
      bins_[i / kBins][i % kBins] = 0;
  }

  /// `key(i)` is the block's key i of `count`. The same in all threads of all blocks.
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
        if (inBin_ == left) // a whole bin: all from its least key on, and the hidden one is in none
          return {least > 0 ? least - 1 : abi::kHiddenKey, 0, budget};
        return {known, left, budget};
      }
    }
    return {}; // the last pass has returned
  }

private:
  /// The bin that the last of `left` keys from the top lies in; returns how many keys there are.
  __device__ __forceinline__ int findBin(const int *bins, int left) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int top = kBins - 1 - kEach * static_cast<int>(threadIdx.x); // of the thread's bins
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
