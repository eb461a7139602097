#pragma once

#include "deft/merge_ranks.cuh"
#include "deft/peers_abi.h"
#include "deft/ptx/dependent_launch.cuh"
#include "deft/ptx/system_flag.cuh"

/// Merges the results of one tree over several GPUs by messages, wherever these GPUs are. One launch packs a
/// message for each rank with the heads that it merges. Another component sends the messages. A second launch
/// merges the received ones. All three follow each other on one stream.
///
/// A message ends with the number of its run. So a rank detects missing messages, even if the sender has
/// stopped waiting, and a captured launch has constant arguments.
namespace deft {

template <class Element> class SlicesExchange {
  using Piece = StatePiece<Element>;

public:
  static constexpr int kThreads = 128; ///< of a block

  /// Called by all threads; starts while the previous kernel ends. Blocks are a multiple of ranks.
  __device__ __forceinline__ static void pack(const abi::SlicesArgs &args) {
    ptx::awaitKernelBefore();
    SlicesExchange(args).packMessage();
  }
  __device__ __forceinline__ static void merge(const abi::SlicesArgs &args) {
    SlicesExchange(args).mergeMessages();
  }

  /// The data received from a rank.
  __device__ __forceinline__ const uint4 *outsOf(int rank) const {
    return static_cast<const uint4 *>(args_.messages[rank]);
  }
  __device__ __forceinline__ const float *lsesOf(int rank) const {
    return reinterpret_cast<const float *>(outsOf(rank) + rowsOf(args_.heads) * pieces_);
  }

private:
  __device__ __forceinline__ explicit SlicesExchange(const abi::SlicesArgs &args)
      : args_(args), pieces_(args.dim / Piece::kValues), run_(args.state->runs + 1) {}

  /// Given up in an earlier run: so all threads of a launch get the same answer.
  __device__ __forceinline__ bool isGivenUp() const {
    return args_.state->broken != 0 && args_.state->broken < run_;
  }
  __device__ __forceinline__ long long rowsOf(int heads) const {
    return static_cast<long long>(args_.queries) * heads;
  }
  /// The place of the run's number in a message of `rows` rows.
  __device__ __forceinline__ unsigned long long *runIn(void *message, long long rows) const {
    auto *const lses = reinterpret_cast<float *>(static_cast<uint4 *>(message) + rows * pieces_);
    return reinterpret_cast<unsigned long long *>(lses + (rows + 1) / 2 * 2);
  }

  __device__ __forceinline__ void packMessage() const {
    if (isGivenUp())
      return;
    const int thread = static_cast<int>(threadIdx.x), block = static_cast<int>(blockIdx.x);
    const int rank = block % args_.count, part = block / args_.count;
    const int parts = static_cast<int>(gridDim.x) / args_.count;
    const abi::SlicesArgs::Slice slice = args_.slices[rank];
    const long long rows = rowsOf(slice.count);
    auto *const outs = static_cast<uint4 *>(args_.messages[rank]);
    auto *const lses = reinterpret_cast<float *>(outs + rows * pieces_);
    const auto *const own = static_cast<const uint4 *>(args_.own);
    const int lane = thread % args_.lanesOfRow, rowsAtOnce = kThreads / args_.lanesOfRow;
#pragma unroll 1
    for (long long to = static_cast<long long>(part) * rowsAtOnce + thread / args_.lanesOfRow; to < rows;
         to += static_cast<long long>(parts) * rowsAtOnce) {
      const long long query = to / slice.count;
      const long long from = query * args_.heads + slice.begin + (to - query * slice.count);
      for (int piece = lane; piece < pieces_; piece += args_.lanesOfRow)
        outs[to * pieces_ + piece] = own[from * pieces_ + piece];
      if (lane == 0)
        lses[to] = args_.ownLse[from];
    }
    if (part != 0 || thread != 0)
      return;
    *runIn(args_.messages[rank], rows) = run_;
    if (rank == 0)
      ptx::storeReleaseSystem(&args_.watch->begun, run_);
  }

  __device__ __forceinline__ void mergeMessages() const {
    if (!isGivenUp() && areThere())
      RanksMerge<Element, abi::SlicesArgs, SlicesExchange>(*this, args_).mergeRows();
    leave();
  }

  /// Each warp checks by itself, with a lane for each rank. False if a message is missing.
  __device__ __forceinline__ bool areThere() const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    unsigned long long missing = 0;
    for (int first = 0; first < args_.count; first += 32) {
      const int rank = first + lane;
      const bool isMissing = rank < args_.count && *runIn(args_.messages[rank], rowsOf(args_.heads)) != run_;
      missing |= static_cast<unsigned long long>(__ballot_sync(~0u, isMissing)) << first;
    }
    if (missing != 0 && lane == 0) {
      args_.state->broken = run_;
      args_.watch->missed = run_;
      ptx::storeReleaseSystem(&args_.watch->missing, missing);
    }
    return missing == 0;
  }

  /// The last block to finish ends the run, even a run that was given up.
  __device__ __forceinline__ void leave() const {
    __syncthreads();
    if (threadIdx.x != 0)
      return;
    if (atomicAdd(&args_.state->arrived, 1) != static_cast<int>(gridDim.x) - 1)
      return;
    args_.state->arrived = 0;
    args_.state->runs = run_;
    ptx::storeReleaseSystem(&args_.watch->ended, run_);
  }

  const abi::SlicesArgs &args_;
  const int pieces_;
  const unsigned long long run_;
};

} // namespace deft
