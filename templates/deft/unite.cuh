#pragma once

#include "deft/abi.h"
#include "deft/ptx/block.cuh"
#include "deft/ptx/dependent_launch.cuh"
#include "deft/select/path_places.cuh"
#include "deft/union_abi.h"

/// Makes a union of lists (abi::Unions). The same for every launch: nothing depends on who comes first.
///
/// What is shared goes through a window of positions in shared memory, each a word of bits: the lists, which
/// rise, set theirs, and the words that are not 0 are written in order.
namespace deft::select {

/// Config has kKvHeads, kLists, kPageSize and kWindow, positions.
template <class Config> class Unite {
public:
  static constexpr int kThreads = 1024;

private:
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kEach = Config::kWindow / kThreads; ///< positions of a thread
  static constexpr int kAtOnce = 8;                        ///< loads of a thread that are on their way
  static constexpr int kTile = 64;                         ///< tokens that items are multiples of
  static_assert(Config::kWindow % kThreads == 0 && kWarps >= abi::kMostUnited, "a warp for each query");

  struct Shared {
    unsigned readers[Config::kWindow];
    int counts[abi::kMostUnited];
    int ownBegin[abi::kMostUnited]; ///< where in each query's list what only it has begins
    int ofWarp[kWarps];
  };

public:
  static constexpr int kSmemBytes = sizeof(Shared);

  static __device__ __forceinline__ void run(const abi::UniteArgs &args) {
    ptx::awaitKernelBefore();
    const abi::Union &one = args.unions.unions[blockIdx.x / Config::kLists];
    if (one.queryCount == 0)
      return;
    Unite unite(args, one, static_cast<int>(blockIdx.x) % Config::kLists);
    unite.writeShared();
    unite.writeOwn();
    if (threadIdx.x == 0)
      args.unions.counts[blockIdx.x] = unite.count_;
    if (args.items != nullptr)
      unite.tellItems(one);
  }

private:
  __device__ __forceinline__ Unite(const abi::UniteArgs &args, const abi::Union &one, int list)
      : shared_(*reinterpret_cast<Shared *>(ptx::dynamicShared<16>())), args_(args),
        selected_(*args.selected), callerIndex_(args.unions.callerIndex + one.queryBegin),
        queries_(one.queryCount), sharedEnd_(one.sharedEnd), list_(list) {
    selected_.pageTable = args.pageTable;
    begin_ = (static_cast<long long>(one.before) * Config::kLists +
              static_cast<long long>(list) * one.queryCount) *
             selected_.budget;
    positions_ = args.unions.positions + begin_;
    places_ = args.unions.places + begin_;
    readers_ = args.unions.readers + begin_;
    stride_ = kThreads; // of whole warps, as many for each query
    while (stride_ * queries_ > kThreads)
      stride_ /= 2;
    query_ = static_cast<int>(threadIdx.x) / stride_;
    first_ = static_cast<int>(threadIdx.x) % stride_;
    const int query = query_ < queries_ ? query_ : 0;
    const long long own = static_cast<long long>(callerIndex_[query]) * Config::kLists + list_;
    listPositions_ = selected_.positions + own * selected_.budget;
    listPlaces_ = selected_.places + own * selected_.budget;
    listCount_ = query_ < queries_ ? selected_.counts[own] : 0;
    if (query_ < queries_ && first_ == 0)
      shared_.counts[query_] = shared_.ownBegin[query_] = listCount_;
    for (int i = threadIdx.x; i < Config::kWindow; i += kThreads)
      shared_.readers[i] = 0u;
    __syncthreads();
  }

  __device__ __forceinline__ void writeShared() {
    int next = first_; // of the thread's part of the list
    for (int window = 0; window < sharedEnd_; window += Config::kWindow) {
      mark(window, next);
      __syncthreads();
      writeWindow(window);
    }
    if (next < listCount_)
      atomicMin(&shared_.ownBegin[query_], next);
    __syncthreads();
  }

  /// The bit of the query for its tokens of the window. Several are asked for before any is looked at.
  __device__ __forceinline__ void mark(int window, int &next) const {
    const int end = min(window + Config::kWindow, sharedEnd_);
    for (int taken = kAtOnce; taken == kAtOnce && next < listCount_; next += taken * stride_) {
      int position[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int at = next + i * stride_;
        position[i] = at < listCount_ ? listPositions_[at] : end;
      }
      taken = 0;
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i)
        if (position[i] < end) {
          atomicOr(&shared_.readers[position[i] - window], 1u << query_);
          ++taken;
        }
    }
  }

  __device__ __forceinline__ void writeWindow(int window) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, mine = threadIdx.x * kEach;
    unsigned readers[kEach];
    int count = 0;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      readers[i] = shared_.readers[mine + i];
      shared_.readers[mine + i] = 0u;
      count += readers[i] != 0u ? 1 : 0;
    }
    int upTo = count;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      const int other = __shfl_up_sync(~0u, upTo, distance);
      upTo += lane >= distance ? other : 0;
    }
    if (lane == 31)
      shared_.ofWarp[warp] = upTo;
    __syncthreads();
    int slot = count_ + upTo - count, end = count_;
    for (int w = 0; w < kWarps; ++w) {
      slot += w < warp ? shared_.ofWarp[w] : 0;
      end += shared_.ofWarp[w];
    }
#pragma unroll
    for (int i = 0; i < kEach; ++i)
      if (readers[i] != 0u) {
        positions_[slot] = window + mine + i;
        readers_[slot++] = readers[i];
      }
    __syncthreads();
    // Apart from that, so that the page table's entries are asked for side by side. All paths agree here.
    PathPlaces<Config> path(selected_, callerIndex_[0]);
#pragma unroll 4
    for (int at = count_ + threadIdx.x; at < end; at += kThreads)
      places_[at] = told(path.placeOf(positions_[at]));
    count_ = end;
  }

  __device__ __forceinline__ void writeOwn() {
    int to = count_;
    for (int i = 0; i < queries_; ++i) {
      const int own = shared_.counts[i] - shared_.ownBegin[i];
      to += i < query_ ? own : 0;
      count_ += own;
    }
    if (query_ >= queries_)
      return;
    const int begin = shared_.ownBegin[query_];
    for (int at = begin + first_; at < listCount_; at += stride_) {
      const int slot = to + at - begin;
      positions_[slot] = listPositions_[at];
      places_[slot] = told(listPlaces_[at]);
      readers_[slot] = 1u << query_;
    }
  }

  /// A place as items want it.
  __device__ __forceinline__ int told(int place) const {
    if constexpr (Config::kPageSize > 0) {
      const unsigned token = static_cast<unsigned>(place);
      if (args_.items != nullptr)
        return static_cast<int>(token / Config::kPageSize) * args_.pageTokens +
               static_cast<int>(token % Config::kPageSize);
    }
    return place;
  }

  __device__ __forceinline__ void tellItems(const abi::Union &one) const {
    if (count_ == 0 && threadIdx.x == 0)
      places_[0] = 0; // something is read where nobody looks
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
  const int queries_, sharedEnd_, list_;
  long long begin_;          ///< of the union's tokens for the list, among all
  int *positions_, *places_; ///< of the union
  unsigned *readers_;
  int count_ = 0;
  /// Of the thread: the query whose list it reads, that list, and which tokens of it.
  int query_, first_, stride_, listCount_;
  const int *listPositions_, *listPlaces_;
};

} // namespace deft::select
