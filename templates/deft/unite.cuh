#pragma once

#include "deft/abi.h"
#include "deft/ptx/block.cuh"
#include "deft/ptx/dependent_launch.cuh"
#include "deft/select/path_places.cuh"
#include "deft/union_abi.h"

/// Makes a union of lists (abi::Unions). Every launch gives the same result, whatever its timing.
///
/// Each block of a union's list has a window of positions, in order, in shared memory, with a word of bits
/// for each position. The lists, which rise, set their bits. Each block writes its nonzero words in order;
/// the counts of earlier blocks give its place. Then come the next windows.
namespace deft::select {

/// Config has kKvHeads, kLists, kPageSize, kWindow (positions) and Peers, the blocks of a list.
template <class Config> class Unite {
  using Peers = typename Config::Peers;

public:
  static constexpr int kThreads = 1024;

private:
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kOfWarp = Config::kWindow / kWarps; ///< positions
  static constexpr int kAtOnce = 8;                        ///< loads of a thread in flight
  static constexpr int kTile = 64;                         ///< items have multiples of this many tokens
  static_assert(kOfWarp % 32 == 0 && kWarps >= abi::kMostUnited, "a warp for each query");

  struct Shared {
    unsigned readers[Config::kWindow];
    int ownCounts[abi::kMostUnited]; ///< the tokens that only this query's list has
    int ofWarp[kWarps];
    int ofBlock[2]; ///< alternating between windows: others may still read the previous count
  };
  struct Counts {
    int before, all;
  };

public:
  static constexpr int kSmemBytes = sizeof(Shared);

  static __device__ __forceinline__ void run(const abi::UniteArgs &args) {
    ptx::awaitKernelBefore();
    const int list = static_cast<int>(blockIdx.x) / Peers::kBlocks;
    const abi::Union &one = args.unions.unions[list / Config::kLists];
    if (one.queryCount == 0)
      return; // all blocks of the list return
    Unite unite(args, one, list % Config::kLists);
    unite.writeShared();
    unite.writeOwn();
    if (unite.rank_ == 0) {
      if (threadIdx.x == 0)
        args.unions.counts[list] = unite.count_;
      if (args.items != nullptr)
        unite.writeItems(one);
    }
    Peers::sync(); // no block may exit while others read its shared memory
  }

private:
  __device__ __forceinline__ Unite(const abi::UniteArgs &args, const abi::Union &one, int list)
      : shared_(*reinterpret_cast<Shared *>(ptx::dynamicShared<16>())), args_(args),
        selected_(*args.selected), callerIndex_(args.unions.callerIndex + one.queryBegin),
        queries_(one.queryCount), sharedEnd_(one.sharedEnd), list_(list), rank_(Peers::rank()),
        lane_(threadIdx.x % 32), warp_(threadIdx.x / 32) {
    selected_.pageTable = args.pageTable;
    begin_ = (static_cast<long long>(one.before) * Config::kLists +
              static_cast<long long>(list) * one.queryCount) *
             selected_.budget;
    positions_ = args.unions.positions + begin_;
    places_ = args.unions.places + begin_;
    readers_ = args.unions.readers + begin_;
    stride_ = kThreads; // whole warps, the same number for each query
    while (stride_ * queries_ > kThreads)
      stride_ /= 2;
    query_ = static_cast<int>(threadIdx.x) / stride_;
    first_ = static_cast<int>(threadIdx.x) % stride_;
    const int query = query_ < queries_ ? query_ : 0;
    const long long own = static_cast<long long>(callerIndex_[query]) * Config::kLists + list_;
    listPositions_ = selected_.positions + own * selected_.budget;
    listPlaces_ = selected_.places + own * selected_.budget;
    listCount_ = query_ < queries_ ? selected_.counts[own] : 0;
    for (int i = threadIdx.x; i < Config::kWindow; i += kThreads)
      shared_.readers[i] = 0u;
    __syncthreads();
  }

  __device__ __forceinline__ void writeShared() {
    int turn = 0;
    for (int begin = 0; begin < sharedEnd_; turn ^= 1) {
      const int each = (sharedEnd_ - begin + Peers::kBlocks - 1) / Peers::kBlocks;
      const int window = min(each, Config::kWindow);
      mark(begin + rank_ * window, window);
      __syncthreads();
      writeWindow(begin + rank_ * window, turn);
      begin += Peers::kBlocks * window;
    }
  }

  /// Sets the query's bit for its tokens in the window. Several are loaded before any is used.
  __device__ __forceinline__ void mark(int begin, int window) const {
    const int end = min(begin + window, sharedEnd_);
    const int first = firstAtOrBehind(begin) + first_;
    for (int next = first, isBehind = 0; !isBehind && next < listCount_; next += kAtOnce * stride_) {
      int position[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int at = next + i * stride_;
        position[i] = at < listCount_ ? listPositions_[at] : end;
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i)
        if (position[i] < end)
          atomicOr(&shared_.readers[position[i] - begin], 1u << query_);
        else
          isBehind = 1;
    }
  }

  /// A search in the query's list by all lanes of a warp: each reads one of 32 places in the remaining
  /// range.
  __device__ __forceinline__ int firstAtOrBehind(int position) const {
    int low = 0, high = listCount_;
    while (low < high) {
      const int step = (high - low + 31) / 32, at = low + (lane_ + 1) * step - 1;
      low += __popc(__ballot_sync(~0u, at < high && listPositions_[at] < position)) * step;
      high = min(high, low + step - 1);
    }
    return low;
  }

  __device__ __forceinline__ void writeWindow(int window, int turn) {
    unsigned *const mine = shared_.readers + warp_ * kOfWarp;
    int ofWarp = 0;
#pragma unroll 4
    for (int i = 0; i < kOfWarp; i += 32)
      ofWarp += __popc(__ballot_sync(~0u, mine[i + lane_] != 0u));
    if (lane_ == 0)
      shared_.ofWarp[warp_] = ofWarp;
    __syncthreads();
    const Counts warps = countsAt(shared_.ofWarp[lane_], warp_);
    if (threadIdx.x == 0)
      shared_.ofBlock[turn] = warps.all;
    Peers::sync();
    const Counts blocks =
        countsAt(lane_ < Peers::kBlocks ? Peers::read(&shared_.ofBlock[turn], lane_) : 0, rank_);
    const int blockBegin = count_ + blocks.before;
    const unsigned lower = (1u << lane_) - 1u;
    int slot = blockBegin + warps.before;
#pragma unroll 4
    for (int i = 0; i < kOfWarp; i += 32) {
      const unsigned readers = mine[i + lane_], there = __ballot_sync(~0u, readers != 0u);
      mine[i + lane_] = 0u;
      if (readers != 0u) {
        const int at = slot + __popc(there & lower);
        positions_[at] = window + warp_ * kOfWarp + i + lane_;
        readers_[at] = readers;
      }
      slot += __popc(there);
    }
    __syncthreads();
    // A separate pass, so that loads of the page table overlap. All paths agree here.
    PathPlaces<Config> path(selected_, callerIndex_[0]);
#pragma unroll 4
    for (int at = blockBegin + threadIdx.x; at < blockBegin + warps.all; at += kThreads)
      places_[at] = path.placeOf(positions_[at]);
    count_ += blocks.all;
  }

  /// For one number in each lane of a warp: the sum before lane `at`, and the total.
  static __device__ __forceinline__ Counts countsAt(int mine, int at) {
    int upTo = mine;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      const int other = __shfl_up_sync(~0u, upTo, distance);
      upTo += static_cast<int>(threadIdx.x % 32) >= distance ? other : 0;
    }
    return {__shfl_sync(~0u, upTo - mine, at), __shfl_sync(~0u, upTo, 31)};
  }

  __device__ __forceinline__ void writeOwn() {
    const int ownBegin = firstAtOrBehind(sharedEnd_);
    if (query_ < queries_ && first_ == 0)
      shared_.ownCounts[query_] = listCount_ - ownBegin;
    __syncthreads();
    const Counts own = countsAt(lane_ < queries_ ? shared_.ownCounts[lane_] : 0, min(query_, 31));
    const int to = count_ + own.before - ownBegin;
    count_ += own.all;
    for (int at = ownBegin + rank_ * stride_ + first_; at < listCount_; at += Peers::kBlocks * stride_) {
      positions_[to + at] = listPositions_[at];
      places_[to + at] = listPlaces_[at];
      readers_[to + at] = 1u << query_;
    }
  }

  __device__ __forceinline__ void writeItems(const abi::Union &one) const {
    if (count_ == 0 && threadIdx.x == 0)
      places_[0] = 0; // a valid place, since the hidden token is still read
    constexpr int kHeads = Config::kKvHeads / Config::kLists;
    const int each = (count_ + one.parts - 1) / one.parts;
    const int part = (each + kTile - 1) / kTile * kTile;
    for (int i = threadIdx.x; i < one.parts * kHeads; i += kThreads) {
      const int first = i / kHeads * part, tokens = max(0, min(part, count_ - first));
      abi::Item &item =
          args_.items[one.itemBegin + i / kHeads * Config::kKvHeads + list_ * kHeads + i % kHeads];
      item.tokens = max(tokens, 1);
      item.commonTokens = tokens > 0 ? static_cast<int>(begin_) + first : abi::kNoTokens;
    }
  }

  Shared &shared_;
  const abi::UniteArgs &args_;
  abi::Selected selected_;
  const int *callerIndex_;
  const int queries_, sharedEnd_, list_, rank_, lane_, warp_;
  long long begin_;          ///< of the union's tokens for the list, among all
  int *positions_, *places_; ///< of the union
  unsigned *readers_;
  int count_ = 0;
  /// For this thread: the query whose list it reads, that list, and its tokens in it.
  int query_, first_, stride_, listCount_;
  const int *listPositions_, *listPlaces_;
};

} // namespace deft::select
