#pragma once

#include "deft/ptx/block.cuh"
#include "deft/ptx/dependent_launch.cuh"
#include "deft/select/path_places.cuh"
#include "deft/select/threshold.cuh"

/// Chooses the tokens of a list: the largest keys of a path, up to the budget; of equal keys the earlier
/// ones. A path has a key for each position. Every launch gives the same result, whatever its timing.
///
/// Each block of a list has a part of its positions, in order. The blocks find the least chosen key together
/// (Threshold). Each warp counts its chosen tokens; the counts of earlier warps give its place in the list.
namespace deft::select {

/// Config has kGroups (of a query's worth), kLists, kPageSize, kThreads, kCachedKeys (that fit into a block's
/// shared memory) and Peers.
template <class Config> class Select {
  using Peers = typename Config::Peers;
  static constexpr int kWarps = Config::kThreads / 32;
  /// Groups of worth over which a list takes the maximum.
  static constexpr int kMerged = Config::kGroups / Config::kLists;
  static constexpr int kPartUnit = 32 * kWarps; ///< parts are multiples of this, and so of a load's width
  static constexpr int kAtOnce = 2;             ///< loads of a thread in flight
  static constexpr int kKept = 32;              ///< candidates that a warp keeps
  static_assert(kWarps <= 32 && Config::kGroups % Config::kLists == 0);

  struct Counts {
    int above, equal; ///< keys above the threshold, and keys equal to it
  };
  struct Shared {
    Threshold<Config> threshold;
    Counts ofWarp[kWarps];
    Counts ofBlock;
    unsigned candidates[kWarps][kKept];
    alignas(16) unsigned keys[Config::kCachedKeys];
  };

public:
  static constexpr int kSmemBytes = sizeof(Shared);

  static __device__ __forceinline__ void run(const abi::SelectArgs &args) {
    ptx::awaitKernelBefore();
    Select select(args, static_cast<int>(blockIdx.x) / Peers::kBlocks);
    select.takeKeys();
    select.choose();
    const Counts blockBefore = select.count();
    select.write(select.beforeWarp(blockBefore), blockBefore);
    Peers::sync(); // no block may exit while others read its shared memory
  }

  /// Calls f(key) for the warp's keys from `low` to `high`. It counts these keys and keeps the first kKept of
  /// them. The next call has a narrower interval. If all keys were kept, it and count() read only those;
  /// otherwise they read the warp's whole share.
  template <class F> __device__ __forceinline__ void forBetween(unsigned low, unsigned high, F &&f) {
    unsigned *const kept = shared_.candidates[warp_];
    if (candidates_ <= kKept) {
      if (lane_ < candidates_ && kept[lane_] - low <= high - low)
        f(kept[lane_]);
      return;
    }
    above_ = candidates_ = 0;
    forOwn([&](int, unsigned key) {
      const bool isIn = key - low <= high - low;
      const unsigned in = __ballot_sync(~0u, isIn);
      above_ += __popc(__ballot_sync(~0u, key > high));
      if (isIn) {
        if (const int to = candidates_ + __popc(in & lower()); to < kKept)
          kept[to] = key;
        f(key);
      }
      candidates_ += __popc(in);
    });
    __syncwarp();
  }

private:
  __device__ __forceinline__ Select(const abi::SelectArgs &args, int listOfAll)
      : args_(args), shared_(*reinterpret_cast<Shared *>(ptx::dynamicShared<16>())), listOfAll_(listOfAll),
        query_(listOfAll / Config::kLists), rank_(Peers::rank()), lane_(threadIdx.x % 32),
        warp_(threadIdx.x / 32), length_(PathPlaces<Config>(args.selected, query_).length()) {
    const int each = (length_ + Peers::kBlocks - 1) / Peers::kBlocks;
    const int part = (each + kPartUnit - 1) / kPartUnit * kPartUnit;
    begin_ = min(rank_ * part, length_);
    count_ = min(part, length_ - begin_);
    isCached_ = part <= Config::kCachedKeys;
  }

  __device__ __forceinline__ unsigned *worth(int merged) const {
    const long long group =
        static_cast<long long>(query_) * Config::kGroups + listOfAll_ % Config::kLists * kMerged + merged;
    return args_.selected.worth + group * args_.selected.worthStride + begin_;
  }

  /// Positions at both ends of the path that are always chosen get a key that no score has.
  __device__ __forceinline__ unsigned withKept(unsigned key, int at) const {
    const int position = begin_ + at;
    const bool isKept = position < args_.keepFirst || position >= length_ - args_.keepLast;
    return isKept && key != abi::kHiddenKey ? ~0u : key;
  }

  /// Counts the part's keys. If they fit into shared memory, moves them there and clears the worth.
  __device__ __forceinline__ void takeKeys() {
    shared_.threshold.clear();
    __syncthreads();
    if (isCached_) {
      for (int at = 4 * threadIdx.x; at < count_; at += 4 * Config::kThreads * kAtOnce)
        takeSome(at);
    } else {
      for (int at = threadIdx.x; at < count_; at += Config::kThreads)
        shared_.threshold.count(key(at));
    }
  }

  /// Takes kAtOnce times four of the thread's keys: all are loaded before any is used.
  __device__ __forceinline__ void takeSome(int first) {
    uint4 keys[kAtOnce] = {};
#pragma unroll
    for (int m = 0; m < kMerged; ++m) {
      uint4 *const from = reinterpret_cast<uint4 *>(worth(m));
      uint4 one[kAtOnce] = {};
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i)
        if (const int at = first + i * 4 * Config::kThreads; at < count_)
          one[i] = from[at / 4];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        if (const int at = first + i * 4 * Config::kThreads; at < count_)
          from[at / 4] = uint4{};
        keys[i] = {max(keys[i].x, one[i].x), max(keys[i].y, one[i].y), max(keys[i].z, one[i].z),
                   max(keys[i].w, one[i].w)};
      }
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
      if (const int at = first + i * 4 * Config::kThreads; at < count_) {
        const uint4 four{withKept(keys[i].x, at), withKept(keys[i].y, at + 1), withKept(keys[i].z, at + 2),
                         withKept(keys[i].w, at + 3)};
        *reinterpret_cast<uint4 *>(shared_.keys + at) = four;
        shared_.threshold.count(four.x);
        shared_.threshold.count(four.y);
        shared_.threshold.count(four.z);
        shared_.threshold.count(four.w);
      }
  }

  __device__ __forceinline__ unsigned key(int at) const {
    if (isCached_)
      return shared_.keys[at];
    unsigned key = abi::kHiddenKey;
#pragma unroll
    for (int m = 0; m < kMerged; ++m)
      key = max(key, worth(m)[at]);
    return withKept(key, at);
  }

  __device__ __forceinline__ void choose() { chosen_ = shared_.threshold.find(args_.selected.budget, *this); }

  /// Calls f(position in the part, key) for the warp's share of the part, for all lanes at once.
  template <class F> __device__ __forceinline__ void forOwn(F &&f) const {
    const int each = (count_ + kPartUnit - 1) / kPartUnit * 32;
    const int end = min((warp_ + 1) * each, count_);
    for (int first = warp_ * each; first < end; first += 32) {
      const int at = first + lane_;
      f(at, at < end ? key(at) : abi::kHiddenKey);
    }
  }

  /// The counts before the block's part, over the whole list.
  __device__ __forceinline__ Counts count() {
    Counts own{};
    const auto add = [&](int, unsigned key) {
      own.above += __popc(__ballot_sync(~0u, isAbove(key)));
      own.equal += __popc(__ballot_sync(~0u, isEqual(key)));
    };
    if (candidates_ <= kKept) {
      own.above = above_;
      add(0, lane_ < candidates_ ? shared_.candidates[warp_][lane_] : abi::kHiddenKey);
    } else {
      forOwn(add);
    }
    if (lane_ == 0)
      shared_.ofWarp[warp_] = own;
    __syncthreads();
    if (warp_ == 0) {
      const Counts all = sumOfWarps(kWarps);
      if (lane_ == 0)
        shared_.ofBlock = all;
    }
    Peers::sync();
    Counts before{};
#pragma unroll 1 // few ranks: unrolled, it only makes the kernel spill
    for (int rank = 0; rank < rank_; ++rank) {
      before.above += Peers::read(&shared_.ofBlock.above, rank);
      before.equal += Peers::read(&shared_.ofBlock.equal, rank);
    }
    return before;
  }
  __device__ __forceinline__ Counts beforeWarp(Counts ofBlock) const {
    const Counts inBlock = sumOfWarps(warp_);
    return {ofBlock.above + inBlock.above, ofBlock.equal + inBlock.equal};
  }
  /// The sum over the block's first warps.
  __device__ __forceinline__ Counts sumOfWarps(int warps) const {
    Counts counts{};
    if (lane_ < warps)
      counts = shared_.ofWarp[lane_];
    return {sum(counts.above), sum(counts.equal)};
  }

  /// Finds the places of the tokens that the block has written. A separate pass, so that loads of the page
  /// table overlap.
  __device__ __forceinline__ void findPlaces(PathPlaces<Config> path, Counts before, const int *positions,
                                             int *places) const {
    __syncthreads();
    const int end = firstSlot({before.above + shared_.ofBlock.above, before.equal + shared_.ofBlock.equal});
#pragma unroll 4
    for (int slot = firstSlot(before) + threadIdx.x; slot < end; slot += Config::kThreads)
      places[slot] = path.placeOf(positions[slot]);
  }

  /// The place in the list after these counts of keys.
  __device__ __forceinline__ int firstSlot(Counts before) const {
    return before.above + min(before.equal, chosen_.equal);
  }

  /// `before`: the counts before the warp's share; `blockBefore`: before the block's part.
  __device__ __forceinline__ void write(Counts before, Counts blockBefore) const {
    const long long list = static_cast<long long>(listOfAll_) * args_.selected.budget;
    int *positions = args_.selected.positions + list, *places = args_.selected.places + list;
    const PathPlaces<Config> path(args_.selected, query_);
    int next = firstSlot(before), equals = before.equal;
    forOwn([&](int at, unsigned key) {
      const bool equal = isEqual(key);
      const unsigned atIt = __ballot_sync(~0u, equal);
      const bool isIn = isAbove(key) || (equal && equals + __popc(atIt & lower()) < chosen_.equal);
      equals += __popc(atIt);
      const unsigned in = __ballot_sync(~0u, isIn);
      if (isIn) {
        const int slot = next + __popc(in & lower());
        positions[slot] = begin_ + at;
      }
      next += __popc(in);
    });
    findPlaces(path, blockBefore, positions, places);
    for (int slot = chosen_.count + rank_ * Config::kThreads + threadIdx.x; slot < args_.selected.budget;
         slot += Peers::kBlocks * Config::kThreads) {
      positions[slot] = -1;
      places[slot] = 0;
    }
    if (rank_ == 0 && threadIdx.x == 0)
      args_.selected.counts[listOfAll_] = chosen_.count;
    if (!isCached_) {
      __syncthreads();
      for (int at = threadIdx.x; at < count_; at += Config::kThreads)
#pragma unroll
        for (int m = 0; m < kMerged; ++m)
          worth(m)[at] = abi::kHiddenKey;
    }
  }

  __device__ __forceinline__ bool isAbove(unsigned key) const { return key > chosen_.key; }
  __device__ __forceinline__ bool isEqual(unsigned key) const {
    return chosen_.equal > 0 && key == chosen_.key;
  }
  __device__ __forceinline__ unsigned lower() const { return (1u << lane_) - 1u; } ///< lanes below this one

  static __device__ __forceinline__ int sum(int x) {
#pragma unroll
    for (int bits = 16; bits > 0; bits /= 2)
      x += __shfl_xor_sync(~0u, x, bits);
    return x;
  }

  const abi::SelectArgs &args_;
  Shared &shared_;
  const int listOfAll_, query_, rank_, lane_, warp_;
  const int length_;  ///< of the path
  int begin_, count_; ///< the block's part of its positions
  bool isCached_;
  Chosen chosen_;
  /// The warp's keys above an interval and in it; kKept + 1: not counted yet.
  int above_ = 0, candidates_ = kKept + 1;
};

} // namespace deft::select
