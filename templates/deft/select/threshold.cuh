#pragma once

#include "deft/select_abi.h"

namespace deft::select {

/// The keys of a list: all keys above `key`, and the first `equal` of the keys that equal it. They are
/// `count` in all.
struct Chosen {
  unsigned key;
  int equal, count;
};

/// Finds the least key of a list. Each pass makes a histogram of the keys in an interval, and finds the bin
/// in which the budget ends. This bin is the interval of the next pass. The search ends when the budget takes
/// a whole bin, or when an interval has a single value. The first pass has fine bins where most scores of
/// attention lie (firstBin). So a search mostly takes two passes if scores are distinct.
template <class Config> class Threshold {
  using Peers = typename Config::Peers;
  static constexpr int kBits = 11, kBins = 1 << kBits;
  static constexpr int kWarps = Config::kThreads / 32;
  static constexpr int kEach = kBins / Config::kThreads; ///< bins for each thread
  static_assert(kBins % Config::kThreads == 0 && kWarps <= 32);

public:
  /// Call it before count(), and let all threads of the block wait for each other in between.
  __device__ __forceinline__ void clear() { clear(bins_[0]); }

  /// Counts a key in the first pass. Each block counts each of its keys once, before find().
  __device__ __forceinline__ void count(unsigned key) {
    if (key != abi::kHiddenKey)
      atomicAdd(&bins_[0][firstBin(key)], 1);
  }

  /// `keys.forBetween(low, high, f)` calls f(key) for the warp's keys from low to high. The result is the
  /// same in all threads of all blocks.
  template <class Keys> __device__ __forceinline__ Chosen find(int budget, Keys &keys) {
    unsigned low = 0, high = 0;
    int left = budget, shift = 0;
#pragma unroll 1
    for (int pass = 0;; ++pass) {
      int *const bins = bins_[pass % 2], *const others = bins_[(pass + 1) % 2];
      if (pass > 0)
        keys.forBetween(low, high, [&](unsigned key) { atomicAdd(&bins[(key - low) >> shift], 1); });
      Peers::sync();
      clear(others); // nobody reads them any more
      const int total = findBin(bins, left);
      if (pass == 0 && total <= budget)
        return {abi::kHiddenKey, 0, total};
      const int bin = bin_;
      low = pass == 0 ? leastOfFirst(bin) : low + (static_cast<unsigned>(bin) << shift);
      high = pass == 0 ? leastOfFirst(bin + 1) - 1u : min(high, low + ((1u << shift) - 1u));
      left = leftInBin_;
      if (inBin_ == left) // the budget takes the whole bin
        return {low - 1u, 0, budget};
      if (low == high)
        return {low, left, budget};
      shift = max(32 - kBits - __clz(static_cast<int>(high - low)), 0);
    }
  }

private:
  static __device__ __forceinline__ void clear(int *bins) {
    for (int i = threadIdx.x; i < kBins; i += Config::kThreads)
      bins[i] = 0;
  }

  /// The bins of the first pass divide each power of two from 1/8 to 32 into 128 parts, and negative scores
  /// likewise. Scores closer to 0 share the first of their sign's bins, and scores farther away the last.
  static constexpr int kLeast = 124 << 7, kHalf = kBins / 2;
  static __device__ __forceinline__ int firstBin(unsigned key) {
    const int top = static_cast<int>(key >> 16) - 0x8000, sign = top >> 31;
    return kHalf + (min(max((top ^ sign) - kLeast, 0), kHalf - 1) ^ sign);
  }
  /// The least key of a bin. For kBins it is 0, which follows the largest key.
  static __device__ __forceinline__ unsigned leastOfFirst(int bin) {
    if (bin % kHalf == 0)
      return bin == 0 ? abi::kHiddenKey + 1u : bin == kHalf ? 0x80000000u : 0u;
    const int top = bin < kHalf ? 0x8000 - kLeast - kHalf + bin : 0x8000 + kLeast - kHalf + bin;
    return static_cast<unsigned>(top) << 16;
  }

  /// Finds the bin that contains the last of the `left` largest keys. Returns the total number of keys.
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
    int upTo = sum; // of the warp's bins, from its highest to the thread's lowest
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      const int other = __shfl_up_sync(~0u, upTo, distance);
      upTo += lane >= distance ? other : 0;
    }
    if (lane == 31)
      ofWarp_[warp] = upTo;
    __syncthreads();
    const int ofLane = lane < kWarps ? ofWarp_[lane] : 0; // the sum of warp `lane`
    const int total = __reduce_add_sync(~0u, ofLane);
    int above = __reduce_add_sync(~0u, lane < warp ? ofLane : 0) + upTo - sum;
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

  int bins_[2][kBins]; ///< passes take them in turn
  int ofWarp_[32];
  int bin_, leftInBin_, inBin_; ///< the bin of findBin, the keys to take from it, and all of its keys
};

} // namespace deft::select
