#pragma once

#include "deft/abi.h"
#include "deft/draft_abi.h"

/// One launch per step, before its layers: it updates the plan on the device to the current trees of the
/// requests' drafts. The attend kernels then read the same plan that the host would make for these trees.
namespace deft {

/// One block for each item that reads drafts, and one for each request, which writes its queries. Each finds
/// the places of drafts by itself, so none waits for another.
class PlanDrafts {
public:
  static constexpr int kThreads = abi::kMostDrafts; ///< of a block

  __device__ __forceinline__ explicit PlanDrafts(const abi::DraftArgs &args)
      : args_(args), thread_(static_cast<int>(threadIdx.x)) {}

  __device__ __forceinline__ void run() const {
    __shared__ Shared shared;
    const int block = static_cast<int>(blockIdx.x);
    if (block >= args_.mostItems)
      writeQueries(shared, block - args_.mostItems);
    else if (const abi::DraftItem item = args_.draftItems[block]; item.item >= 0)
      writeItem(shared, item);
  }

private:
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kWords = abi::kMostDrafts / 32;

  /// For drafts of one or several requests, one after the other. A request's drafts start at its *base*.
  struct Shared {
    unsigned sees[kWords][kThreads];
    int depth[kThreads], parent[kThreads], size[kThreads];         ///< of each draft's subtree
    int before[kThreads];                                          ///< in its siblings' subtrees
    int draftAt[kThreads], sizeAt[kThreads], positionAt[kThreads]; ///< by places
    int wrong[kThreads];                                           ///< for each base: a draft + 1, or 0
    int seenOfWarp[kWarps];
  };

  /// A thread's draft.
  struct Own {
    int request = -1; ///< index into the requests; -1: no draft
    int base = 0;
  };

  /// The tokens that a request has gained, limited to those that the plan supports.
  __device__ __forceinline__ int gainOf(const abi::DraftRequest &request) const {
    if (args_.lengths == nullptr)
      return 0;
    return min(max(args_.lengths[request.request] - request.length, 0), request.mostGain);
  }

  /// Whether this cache has a slot of the request.
  __device__ __forceinline__ bool isHeld(const abi::DraftRequest &request, int slot) const {
    return request.spread == abi::kWhole || (args_.held[request.heldBegin + slot / 32] >> slot % 32 & 1) != 0;
  }

  __device__ __forceinline__ int heldBefore(const abi::DraftRequest &request, int slot) const {
    int held = 0;
    for (int word = 0; word * 32 < slot; ++word) {
      const int left = slot - word * 32;
      held += __popc(args_.held[request.heldBegin + word] & (left < 32 ? (1u << left) - 1 : ~0u));
    }
    return held;
  }

  /// Where a slot that this cache has lies.
  __device__ __forceinline__ int locationOf(const abi::DraftRequest &request, int slot) const {
    return request.location + (request.spread >= abi::kPacked ? heldBefore(request, slot) : slot);
  }

  /// Finds the places of the threads' drafts. All threads must call it.
  __device__ __forceinline__ void findPlaces(Shared &shared, const Own &own) const {
    const bool isThere = own.request >= 0;
    abi::DraftRequest request{};
    if (isThere)
      request = args_.requests[own.request];
    const int draft = thread_ - own.base, count = request.count;
    unsigned sees[kWords];
    int depth = -1;
    readRow(request, isThere, draft, sees);
#pragma unroll
    for (int word = 0; word < kWords; ++word) {
      shared.sees[word][thread_] = sees[word];
      depth += __popc(sees[word]);
    }
    shared.depth[thread_] = depth;
    shared.wrong[thread_] = 0;
    __syncthreads();

    const int given = isThere && args_.depths != nullptr ? args_.depths[rowOf(request, draft)] : depth;
    int parent = isThere ? parentOf(shared, own.base, draft, depth, sees) : -1;
    if (isThere && (!isTree(shared, own.base, draft, parent, sees) || given < 0 || given >= count))
      atomicMax(&shared.wrong[own.base], draft + 1);
    __syncthreads();

    // If the rows do not form a tree, each draft sees only itself.
    const bool isWrong = isThere && shared.wrong[own.base] > 0;
    int size = 1;
    if (isWrong)
      parent = -1;
    else
      for (int other = 0; other < count; ++other)
        size += other != draft && (shared.sees[draft / 32][own.base + other] >> draft % 32 & 1) != 0 ? 1 : 0;
    shared.parent[thread_] = parent;
    shared.size[thread_] = size;
    __syncthreads();

    int before = 0;
    for (int other = 0; isThere && other < draft; ++other)
      before += shared.parent[own.base + other] == parent ? shared.size[own.base + other] : 0;
    shared.before[thread_] = before;
    __syncthreads();

    if (isThere) {
      int place = before;
      if (!isWrong) {
        place = depth;
        forEachSeen(sees, [&](int other) { place += shared.before[own.base + other]; });
      }
      shared.draftAt[own.base + place] = draft;
      shared.sizeAt[own.base + place] = size;
      shared.positionAt[own.base + place] = request.length + gainOf(request) + (isWrong ? 0 : given);
    }
    __syncthreads();
  }

  __device__ __forceinline__ long long rowOf(const abi::DraftRequest &request, int draft) const {
    return static_cast<long long>(request.request) * args_.rows + draft;
  }

  /// Reads the bits of existing drafts.
  __device__ __forceinline__ void readRow(const abi::DraftRequest &request, bool isThere, int draft,
                                          unsigned (&sees)[kWords]) const {
    const int words = (args_.rows + 31) / 32;
    const unsigned *const row = args_.bits + (isThere ? rowOf(request, draft) * words : 0);
#pragma unroll
    for (int word = 0; word < kWords; ++word) {
      const int left = request.count - word * 32;
      sees[word] = isThere && left > 0 ? row[word] & (left < 32 ? (1u << left) - 1 : ~0u) : 0;
    }
  }

  template <class F> static __device__ __forceinline__ void forEachSeen(const unsigned (&sees)[kWords], F f) {
#pragma unroll
    for (int word = 0; word < kWords; ++word)
      for (unsigned left = sees[word]; left != 0; left &= left - 1)
        f(word * 32 + __popc((left & -left) - 1));
  }

  /// The deepest other draft that a draft sees; -1: none qualifies.
  static __device__ __forceinline__ int parentOf(const Shared &shared, int base, int draft, int depth,
                                                 const unsigned (&sees)[kWords]) {
    int parent = -1;
    forEachSeen(sees, [&](int other) {
      if (other != draft && shared.depth[base + other] == depth - 1)
        parent = other;
    });
    return parent;
  }

  /// Whether a draft sees itself and exactly the drafts that its parent sees (none without a parent).
  static __device__ __forceinline__ bool isTree(const Shared &shared, int base, int draft, int parent,
                                                const unsigned (&sees)[kWords]) {
    bool is = true;
#pragma unroll
    for (int word = 0; word < kWords; ++word) {
      const unsigned self = word == draft / 32 ? 1u << draft % 32 : 0;
      const unsigned others = parent >= 0 ? shared.sees[word][base + parent] : 0;
      is = is && sees[word] == (others | self) && (others & self) == 0;
    }
    return is;
  }

  __device__ __forceinline__ void writeQueries(Shared &shared, int index) const {
    const abi::DraftRequest request = args_.requests[index];
    if (request.count == 0) // the same for all threads
      return;
    const bool isThere = thread_ < request.count;
    findPlaces(shared, {isThere ? index : -1, 0});
    if (isThere) {
      const int query = args_.queryAt[request.firstQuery + thread_];
      args_.callerIndex[query] = request.firstQuery + shared.draftAt[thread_];
      args_.queryPos[query] = shared.positionAt[thread_];
    }
    if (thread_ != 0)
      return;
    if (shared.wrong[0] > 0)
      *args_.noTree = mark(request, shared.wrong[0] - 1);
    if (args_.lengths == nullptr)
      return;
    if (const int length = args_.lengths[request.request];
        length < request.length || length - request.length > request.mostGain)
      *args_.unserved = mark(request, length);
  }

  static __device__ __forceinline__ unsigned long long mark(const abi::DraftRequest &request, int number) {
    return static_cast<unsigned long long>(static_cast<unsigned>(number)) << 32 |
           static_cast<unsigned>(request.request + 1);
  }

  /// The place of the next run, and its first token.
  struct Cursor {
    abi::Run *runs;
    int runCount, tokens;
  };

  /// Handles the parts of as many requests together as fit the block's threads. (The parts of a request are
  /// consecutive.)
  __device__ __forceinline__ void writeItem(Shared &shared, const abi::DraftItem &item) const {
    const int end = item.partBegin + item.partCount;
    Cursor at{args_.runs + item.runBegin, item.runCount, item.tokens};
    for (int first = item.partBegin; first < end;) {
      Own own;
      int last = first, base = 0, next = 0;
      for (int request = -1; last < end; ++last) {
        if (args_.parts[last].request != request) {
          request = args_.parts[last].request;
          const int count = args_.requests[request].count;
          if (next + count > kThreads)
            break;
          base = next;
          next += count;
          if (thread_ >= base && thread_ < next)
            own = {request, base};
        }
      }
      findPlaces(shared, own);
      next = 0;
      for (int request = -1; first < last; ++first) {
        const abi::DraftPart part = args_.parts[first];
        if (part.request != request) {
          request = part.request;
          base = next;
          next += args_.requests[request].count;
        }
        writePart(shared, part, base, at);
      }
      __syncthreads(); // the places are no longer needed
    }
    if (thread_ == 0) {
      if (at.tokens == 0) // an item without tokens would end the list: it gets a hidden one
        at.runs[at.runCount++] = {0, at.tokens = 1, item.spare, 0, 0, 0, 0, 0};
      args_.items[item.item].runCount = at.runCount;
      args_.items[item.item].tokens = at.tokens;
    }
  }

  /// Writes a run for each stretch of gained tokens that this cache has.
  __device__ __forceinline__ void writeGain(const abi::DraftRequest &request, const abi::DraftPart &part,
                                            int gain, Cursor &at) const {
    const bool isOne = request.spread == abi::kWhole || request.spread == abi::kJoined;
    for (int slot = 0; slot < gain;) {
      int end = slot + 1, tokens = 0;
      if (isOne) {
        end = gain;
        tokens = request.spread == abi::kWhole ? gain : heldBefore(request, gain);
      } else if (isHeld(request, slot)) {
        while (end < gain && isHeld(request, end))
          ++end;
        tokens = end - slot;
      }
      if (tokens > 0) {
        if (thread_ == 0)
          at.runs[at.runCount] = {at.tokens,
                                  tokens,
                                  locationOf(request, slot),
                                  request.length + slot,
                                  0,
                                  part.queryBegin,
                                  part.queryEnd,
                                  0,
                                  0};
        ++at.runCount;
        at.tokens += tokens;
      }
      slot = end;
    }
  }

  /// Writes the tokens that the request has gained, and the places of the part that any of its queries sees,
  /// as far as they lie in this cache.
  __device__ __forceinline__ void writePart(Shared &shared, const abi::DraftPart &part, int base,
                                            Cursor &at) const {
    const abi::DraftRequest request = args_.requests[part.request];
    const int gain = gainOf(request);
    if (part.readsGain != 0)
      writeGain(request, part, gain, at);
    const int place = part.placeBegin + thread_;
    const int toItem = part.queryBegin - part.firstPlace;
    int begin = 0, end = 0, slot = 0;
    if (place < part.placeEnd)
      slot = gain + shared.draftAt[base + place];
    if (place < part.placeEnd && isHeld(request, slot)) {
      begin = max(place + toItem, part.queryBegin);
      end = min(place + shared.sizeAt[base + place] + toItem, part.queryEnd);
    }
    const unsigned seen = __ballot_sync(~0u, begin < end);
    if (thread_ % 32 == 0)
      shared.seenOfWarp[thread_ / 32] = __popc(seen);
    __syncthreads();
    int index = __popc(seen & ((1u << thread_ % 32) - 1)), count = 0;
#pragma unroll
    for (int warp = 0; warp < kWarps; ++warp) {
      index += warp < thread_ / 32 ? shared.seenOfWarp[warp] : 0;
      count += shared.seenOfWarp[warp];
    }
    if (begin < end)
      at.runs[at.runCount + index] = {
          at.tokens + index, 1, locationOf(request, slot), shared.positionAt[base + place], 0, begin, end, 0};
    at.runCount += count;
    at.tokens += count;
    __syncthreads(); // before the next part's counts overwrite these
  }

  const abi::DraftArgs &args_;
  const int thread_;
};

} // namespace deft
