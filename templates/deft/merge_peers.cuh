#pragma once

#include "deft/merge_states.cuh"
#include "deft/peers_abi.h"
#include "deft/ptx/dependent_launch.cuh"
#include "deft/ptx/system_flag.cuh"

/// Results of one tree over several GPUs become one, in one launch a rank: it copies its own results into
/// memory that its peers read, sets its flag at each of them, waits for theirs, and merges its slice of the
/// heads. All blocks must run at once: the host launches no more than the device has multiprocessors.
///
/// Flags count replays, so that a captured launch needs no argument to change. A rank that has seen all flags
/// of replay n knows that everybody has ended replay n - 1, so nobody reads the buffer of n - 1, which is
/// written in replay n + 1.
namespace deft {

template <class Element> class PeersMerge {
  using Piece = StatePiece<Element>;

public:
  static constexpr int kThreads = 128; ///< of a block

  /// Of all threads of a launch, which begins while the one before it ends.
  __device__ __forceinline__ static void run(const abi::PeersArgs &args) {
    ptx::awaitKernelBefore();
    PeersMerge(args).merge();
  }

private:
  __device__ __forceinline__ explicit PeersMerge(const abi::PeersArgs &args)
      : args_(args), memory_(*args.ranks[args.rank]), pieces_(args.dim / Piece::kValues),
        rows_(static_cast<long long>(args.queries) * args.heads), replay_(memory_.replays + 1) {}

  __device__ __forceinline__ void merge() const {
    if (!isGivenUp()) {
      publish();
      if (await())
        mergeRows();
    }
    leave();
  }

  /// In an earlier replay: so all threads of a launch say the same.
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
  __device__ __forceinline__ float *lsesOf(int rank) const {
    return reinterpret_cast<float *>(reinterpret_cast<uint4 *>(bufferOf(rank)) + rows_ * pieces_);
  }

  __device__ __forceinline__ void publish() const {
    auto *const outs = reinterpret_cast<uint4 *>(bufferOf(args_.rank));
    const auto *const own = static_cast<const uint4 *>(args_.own);
    for (long long at = thread(); at < rows_ * pieces_; at += threads())
      outs[at] = own[at];
    float *const lses = lsesOf(args_.rank);
    for (long long at = thread(); at < rows_; at += threads())
      lses[at] = args_.ownLse[at];
    __syncthreads();
    if (threadIdx.x != 0)
      return;
    ptx::fenceSystem();
    if (atomicAdd(&memory_.arrived, 1) != static_cast<int>(gridDim.x) - 1)
      return;
    ptx::fenceSystem(); // what other blocks have written before they arrived comes before the flags
#pragma unroll 1
    for (int rank = 0; rank < args_.count; ++rank)
      ptx::storeReleaseSystem(&args_.ranks[rank]->flags[args_.rank], replay_);
  }

  /// Each warp waits by itself, a lane for a rank. False where one is late.
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

  /// Reading a peer's memory takes a microsecond or two: what a row needs of all ranks is asked for at once.
  __device__ __forceinline__ void mergeRows() const {
    if (args_.count <= 2)
      mergeRowsOf<2>();
    else if (args_.count <= 4)
      mergeRowsOf<4>();
    else
      mergeRowsOf<8>();
  }

  /// A row has so many lanes of a warp.
  template <int kAtOnce> __device__ __forceinline__ void mergeRowsOf() const {
    const int lane = static_cast<int>(threadIdx.x) % args_.lanesOfRow;
    const long long count = static_cast<long long>(args_.queries) * args_.headCount;
#pragma unroll 1
    for (long long to = thread() / args_.lanesOfRow; to < count; to += threads() / args_.lanesOfRow) {
      const long long query = to / args_.headCount;
      mergeRow<kAtOnce>(query * args_.heads + args_.headBegin + (to - query * args_.headCount), to, lane);
    }
  }

  /// The logarithms of ranks [first, first + kAtOnce), -inf for those that are not there.
  template <int kAtOnce>
  __device__ __forceinline__ void read(float (&lses)[kAtOnce], int first, long long row) const {
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
      lses[i] = first + i < args_.count ? lsesOf(first + i)[row] : -kInfinity;
  }

  /// A piece of the row of those ranks.
  template <int kAtOnce>
  __device__ __forceinline__ void read(uint4 (&packed)[kAtOnce], int first, long long row, int piece) const {
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
      if (first + i < args_.count)
        packed[i] = reinterpret_cast<const uint4 *>(bufferOf(first + i))[row * pieces_ + piece];
  }

  template <int kAtOnce>
  __device__ __forceinline__ void mergeRow(long long row, long long to, int lane) const {
    float lses[kAtOnce];
    uint4 packed[kAtOnce];
    const bool areAllAtOnce = args_.count <= kAtOnce;
    // More than four pieces with their logarithms do not fit registers on all GPUs.
    const bool isAhead = kAtOnce <= 4 && areAllAtOnce;
    if (isAhead && lane < pieces_)
      read(packed, 0, row, lane);
    float top = -kInfinity, total = 0.f;
#pragma unroll 1
    for (int first = 0; first < args_.count; first += kAtOnce) {
      read(lses, first, row);
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i)
        top = lses[i] > top ? lses[i] : top;
    }
    const float shift = top == -kInfinity ? 0.f : top;
#pragma unroll 1
    for (int first = 0; first < args_.count; first += kAtOnce) {
      if (!areAllAtOnce)
        read(lses, first, row);
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i)
        total += weightOf(lses[i], shift);
    }
    const float scale = total == 0.f ? 0.f : 1.f / total; // of a row that nobody saw: 0
#pragma unroll 1
    for (int piece = lane; piece < pieces_; piece += args_.lanesOfRow) {
      Piece sum;
#pragma unroll 1
      for (int first = 0; first < args_.count; first += kAtOnce) {
        if (!areAllAtOnce)
          read(lses, first, row);
        if (!isAhead || piece != lane)
          read(packed, first, row, piece);
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i)
          if (const float weight = weightOf(lses[i], shift); weight != 0.f)
            sum.add(weight, packed[i]); // what an empty part has does not matter; NaN is passed on
      }
      static_cast<uint4 *>(args_.out)[to * pieces_ + piece] = sum.pack(scale);
    }
    if (lane == 0 && args_.lse != nullptr)
      args_.lse[to] = shift + ptx::log2Fast(total) * kLn2;
  }

  /// NaN stays NaN.
  __device__ __forceinline__ float weightOf(float lse, float shift) const {
    return ptx::exp2Fast((lse - shift) * kLog2e);
  }

  /// The last block that is done ends the replay, also one that was given up. What it has read of its peers
  /// it has, and the end of the launch comes before the next one's flags.
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
