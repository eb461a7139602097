#pragma once

#include "deft/abi.h"
#include "deft/ptx/block.cuh"
#include "deft/ptx/dependent_launch.cuh"
#include "deft/select_abi.h"
#include "deft/union_abi.h"

/// Makes a union of lists from a caller: cache slots in any order, -1 for no token, and slots
/// may repeat. One block for each union. Every launch gives the same result, whatever its
/// timing.
///
/// A hash table in shared memory has the slots and their readers. Then the lists' entries are looked up in
/// order. The first query that lists a slot adds a token to the union, for all its readers. A query that
/// lists it several times adds the further tokens, only for itself.
namespace deft::select {

/// Config has kPlaces, the size of the table, and kMostListed, the most entries of a union's lists.
template <class Config> class UniteGiven {
public:
  static constexpr int kThreads = 1024;
  static constexpr int kMostQueries = abi::kMostGivenUnited;

private:
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kRounds = (Config::kMostListed + kThreads - 1) / kThreads; ///< for a thread's entries
  static constexpr int kTile = 64; ///< items have multiples of this many tokens
  static_assert(kRounds <= kWarps && Config::kMostListed < Config::kPlaces);

  struct Entry {
    int slot;         ///< -1: the place is free
    unsigned readers; ///< a bit for each query; kMostQueries higher, one for each that lists it again
  };
  struct Shared {
    Entry table[Config::kPlaces];
    int tokens[kRounds * kWarps]; ///< of each round and warp; then the sum of those before it in the round
    int ofRound[32];
  };

public:
  static constexpr int kSmemBytes = sizeof(Shared);

  static __device__ __forceinline__ void run(const abi::UniteArgs &args) {
    ptx::awaitKernelBefore();
    const abi::Union &one = args.unions.unions[blockIdx.x];
    if (one.queryCount == 0)
      return; // it ends the list
    UniteGiven unite(args, one);
    unite.fill();
    __syncthreads();
    unite.decide();
    unite.write();
    if (threadIdx.x == 0)
      args.unions.counts[blockIdx.x] = unite.count_;
    unite.writeItems();
  }

private:
  __device__ __forceinline__ UniteGiven(const abi::UniteArgs &args, const abi::Union &one)
      : shared_(*reinterpret_cast<Shared *>(ptx::dynamicShared<16>())), args_(args), one_(one),
        budget_(args.selected->budget), listed_(one.queryCount * args.selected->budget),
        begin_(static_cast<long long>(one.before) * args.selected->budget), lane_(threadIdx.x % 32),
        warp_(threadIdx.x / 32) {
    for (int i = threadIdx.x; i < Config::kPlaces; i += kThreads)
      shared_.table[i] = {-1, 0u};
    __syncthreads();
  }

  __device__ __forceinline__ const int *listOf(int query) const {
    return args_.pageTable +
           static_cast<long long>(args_.unions.callerIndex[one_.queryBegin + query]) * budget_;
  }
  /// The slot of an entry in the concatenated lists.
  __device__ __forceinline__ int slotAt(int entry) const {
    const int query = entry / budget_;
    return entry < listed_ ? listOf(query)[entry - query * budget_] : -1;
  }

  static __device__ __forceinline__ int firstPlace(int slot) {
    const unsigned mixed = static_cast<unsigned>(slot) * 2654435769u;
    return static_cast<int>(static_cast<unsigned long long>(mixed) * Config::kPlaces >> 32);
  }
  static __device__ __forceinline__ int nextPlace(int place) {
    return place + 1 < Config::kPlaces ? place + 1 : 0;
  }

  __device__ __forceinline__ void fill() const {
#pragma unroll 4
    for (int entry = threadIdx.x; entry < listed_; entry += kThreads) {
      const int slot = slotAt(entry);
      if (slot < 0)
        continue;
      int place = firstPlace(slot);
      for (;; place = nextPlace(place)) { // ends: there are more places than entries
        const int there = atomicCAS(&shared_.table[place].slot, -1, slot);
        if (there == -1 || there == slot)
          break;
      }
      const unsigned reader = 1u << entry / budget_;
      if ((atomicOr(&shared_.table[place].readers, reader) & reader) != 0u)
        atomicOr(&shared_.table[place].readers, reader << kMostQueries);
    }
  }

  __device__ __forceinline__ unsigned readersOf(int slot) const {
    int place = firstPlace(slot);
    while (shared_.table[place].slot != slot)
      place = nextPlace(place);
    return shared_.table[place].readers;
  }

  /// The queries for which an entry adds a token to the union; 0: it adds none.
  __device__ __forceinline__ unsigned givenBy(int entry, int slot) const {
    if (slot < 0)
      return 0u;
    const int query = entry / budget_;
    const unsigned readers = readersOf(slot);
    if ((readers >> (query + kMostQueries) & 1u) != 0u) { // rare
      const int *const list = listOf(query);
      for (int i = 0, own = entry - query * budget_; i < own; ++i)
        if (list[i] == slot)
          return 1u << query;
    }
    const unsigned all = readers & ((1u << kMostQueries) - 1u);
    return __ffs(static_cast<int>(all)) - 1 == query ? all : 0u;
  }

  /// Finds where each warp's tokens of a round begin.
  __device__ __forceinline__ void decide() {
    const int rounds = (listed_ + kThreads - 1) / kThreads;
    for (int round = 0; round < rounds; ++round) {
      const int entry = round * kThreads + static_cast<int>(threadIdx.x);
      const unsigned given = givenBy(entry, slotAt(entry));
      const unsigned giving = __ballot_sync(~0u, given != 0u);
      gives_ |= (given != 0u ? 1u : 0u) << round;
      if (lane_ == 0)
        shared_.tokens[round * kWarps + warp_] = __popc(giving);
    }
    __syncthreads();
    if (warp_ < rounds) {
      const int own = shared_.tokens[warp_ * kWarps + lane_], upTo = upToLane(own);
      shared_.tokens[warp_ * kWarps + lane_] = upTo - own;
      if (lane_ == 31)
        shared_.ofRound[warp_] = upTo;
    }
    __syncthreads();
    const int ofRound = lane_ < rounds ? shared_.ofRound[lane_] : 0, upTo = upToLane(ofRound);
    roundBegin_ = upTo - ofRound;
    count_ = __shfl_sync(~0u, upTo, 31);
  }

  __device__ __forceinline__ int upToLane(int mine) const {
    int upTo = mine;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      const int other = __shfl_up_sync(~0u, upTo, distance);
      upTo += lane_ >= distance ? other : 0;
    }
    return upTo;
  }

  __device__ __forceinline__ void write() const {
    for (int round = 0; round * kThreads < listed_; ++round) {
      const bool gives = (gives_ >> round & 1u) != 0u;
      const unsigned giving = __ballot_sync(~0u, gives);
      const int begin = __shfl_sync(~0u, roundBegin_, round) + shared_.tokens[round * kWarps + warp_];
      if (gives) {
        const int entry = round * kThreads + static_cast<int>(threadIdx.x), slot = slotAt(entry);
        const long long at = begin_ + begin + __popc(giving & ((1u << lane_) - 1u));
        args_.unions.places[at] = slot;
        args_.unions.readers[at] = givenBy(entry, slot);
      }
    }
  }

  /// Like items of other unions (union_abi.h), but with one list, and one item for each part.
  __device__ __forceinline__ void writeItems() const {
    const int each = (count_ + one_.parts - 1) / one_.parts;
    const int part = (each + kTile - 1) / kTile * kTile;
    for (int i = threadIdx.x; i < one_.parts; i += kThreads) {
      const int first = i * part, tokens = max(0, min(part, count_ - first));
      abi::Item &item = args_.items[one_.itemBegin + i];
      item.tokens = max(tokens, 1);
      item.commonTokens = tokens > 0 ? static_cast<int>(begin_) + first : abi::kNoTokens;
    }
  }

  Shared &shared_;
  const abi::UniteArgs &args_;
  const abi::Union &one_;
  const int budget_, listed_; ///< entries of a list, and of all
  const long long begin_;     ///< of the union's tokens, among all
  const int lane_, warp_;
  unsigned gives_ = 0u; ///< for this thread: a bit for each round
  int count_ = 0;       ///< tokens of the union
  int roundBegin_ = 0;  ///< of the round with the lane's number
};

} // namespace deft::select
