#pragma once

#include "deft/merge_ranks.cuh"
#include "deft/peers_abi.h"
#include "deft/ptx/dependent_launch.cuh"
#include "deft/ptx/system_flag.cuh"

/// Merges the results of one tree over several GPUs, in one launch per rank. A rank copies its own results
/// into memory that its peers read, sets its flag at each of them, waits for their flags, and merges its
/// slice of the heads. All blocks must run at once: the host launches at most one per multiprocessor.
///
/// Flags count replays, so a captured launch has constant arguments. A rank that has seen all flags of replay
/// n knows that all ranks have finished replay n - 1. So no rank reads the buffer of n - 1 any more, and
/// replay n + 1 may overwrite it.
namespace deft {

template <class Element> class PeersMerge {
  using Piece = StatePiece<Element>;

public:
  static constexpr int kThreads = 128; ///< of a block

  /// Called by all threads of a launch, which starts while the previous kernel ends.
  __device__ __forceinline__ static void run(const abi::PeersArgs &args) {
    ptx::awaitKernelBefore();
    PeersMerge(args).merge();
  }

  /// The results that a rank has published in this replay.
  __device__ __forceinline__ const uint4 *outsOf(int rank) const {
    return reinterpret_cast<const uint4 *>(bufferOf(rank));
  }
  __device__ __forceinline__ const float *lsesOf(int rank) const {
    return reinterpret_cast<const float *>(outsOf(rank) + rows_ * pieces_);
  }

private:
  __device__ __forceinline__ explicit PeersMerge(const abi::PeersArgs &args)
      : args_(args), memory_(*args.ranks[args.rank]), pieces_(args.dim / Piece::kValues),
        rows_(static_cast<long long>(args.queries) * args.heads), replay_(memory_.replays + 1) {}

  __device__ __forceinline__ void merge() const {
    if (!isGivenUp()) {
      publish();
      if (await())
        RanksMerge<Element, abi::PeersArgs, PeersMerge>(*this, args_).mergeRows();
    }
    leave();
  }

  /// Given up in an earlier replay: so all threads of a launch get the same answer.
  __device__ __forceinline__ bool isGivenUp() const {
    return memory_.broken != 0 && memory_.broken < replay_;
  }

  __device__ __forceinline__ long long thread() const {
    return static_cast<long long>(blockIdx.x) * kThreads + threadIdx.x;
  }
  __device__ __forceinline__ long long threads() const {
    return static_cast<long long>(gridDim.x) * kThreads;
  }

  __device__ __forceinline__ char *bufferOf(int rank) const {
    return reinterpret_cast<char *>(args_.ranks[rank] + 1) +
           static_cast<long long>(replay_ % 2) * args_.bufferBytes;
  }

  __device__ __forceinline__ void publish() const {
    auto *const outs = reinterpret_cast<uint4 *>(bufferOf(args_.rank));
    const auto *const own = static_cast<const uint4 *>(args_.own);
    for (long long at = thread(); at < rows_ * pieces_; at += threads())
      outs[at] = own[at];
    auto *const lses = reinterpret_cast<float *>(outs + rows_ * pieces_);
    for (long long at = thread(); at < rows_; at += threads())
      lses[at] = args_.ownLse[at];
    __syncthreads();
    if (threadIdx.x != 0)
      return;
    ptx::fenceSystem();
    if (atomicAdd(&memory_.arrived, 1) != static_cast<int>(gridDim.x) - 1)
      return;
    ptx::fenceSystem(); // data that other blocks wrote before they arrived precedes the flags
#pragma unroll 1
    for (int rank = 0; rank < args_.count; ++rank)
      ptx::storeReleaseSystem(&args_.ranks[rank]->flags[args_.rank], replay_);
  }

  /// Each warp waits by itself, with a lane for each rank. False if a rank is late.
  __device__ __forceinline__ bool await() const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const unsigned long long begin = ptx::nanoseconds();
    bool isThere = true;
    for (int first = 0; first < args_.count; first += 32) {
      const int rank = first + lane;
      bool hasCome = rank >= args_.count;
      bool isLate = false;
      while (!hasCome && !isLate) {
        hasCome = ptx::loadAcquireSystem(&memory_.flags[rank]) >= replay_;
        isLate = !hasCome && ptx::nanoseconds() - begin > args_.mostNs;
      }
      if (isLate) {
        *args_.late = replay_ << 32 | static_cast<unsigned>(rank + 1);
        memory_.broken = replay_;
      }
      isThere = isThere && hasCome;
    }
    return __all_sync(~0u, isThere);
  }

  /// The last block to finish ends the replay, even a replay that was given up. All reads of peers are
  /// complete, and the launch ends before the next one sets flags.
  __device__ __forceinline__ void leave() const {
    __syncthreads();
    if (threadIdx.x != 0)
      return;
    const int blocks = static_cast<int>(gridDim.x);
    if (atomicAdd(&memory_.arrived, 1) != (isGivenUp() ? blocks : 2 * blocks) - 1)
      return;
    memory_.arrived = 0;
    memory_.replays = replay_;
  }

  const abi::PeersArgs &args_;
  abi::PeerMemory &memory_;
  const int pieces_;
  const long long rows_;
  const unsigned long long replay_;
};

} // namespace deft
