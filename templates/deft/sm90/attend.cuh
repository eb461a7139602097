#pragma once

#include "deft/common/plan_ahead.cuh"
#include "deft/ptx/block.cuh"
#include "deft/ptx/dependent_launch.cuh"
#include "deft/sm90/consumer.cuh"
#include "deft/sm90/producer.cuh"

/// Attention for Hopper: persistent blocks of one copying and one or two computing warpgroups around a ring
/// of KV tiles. With two, a block has its own multiprocessor and items of up to 128 rows. With one, two light
/// blocks share it, with items of up to 64: one starts or ends a unit while the other computes.
namespace deft::sm90 {

template <class Config, class Variant> class Attend {
  using Copying = Producer<Config, Variant>;
  using L = Layout<Config>;

public:
  static __device__ __forceinline__ void run(const abi::AttendArgs &args,
                                             const typename Variant::Params &params) {
    ptx::allowDependents();
    abi::Item first{}; // the load overlaps the block's setup
    if (threadIdx.x < 128)
      first = Copying::itemOf(args, blockIdx.x);
    else
      askForPlan(args, threadIdx.x - 128, 128 * L::kGroups);
    char *unaligned = ptx::dynamicShared<16>();
    const unsigned begin = ptx::sharedAddress(unaligned);
    const unsigned aligned = (begin + L::kAlignment - 1) & ~(L::kAlignment - 1u);
    const Ring<Config> ring{aligned, unaligned + (aligned - begin)};
    const int warp = threadIdx.x / 32;
    if (warp < 3) {
      Copying::prefetchMaps(args);
    } else if (threadIdx.x == 3 * 32) {
      for (int stage = 0; stage < Config::kStages; ++stage) {
        ptx::mbarrierInit(ring.full(stage), kFullArrivals<Config>);
        ptx::mbarrierInit(ring.empty(stage), L::kConsumerWarps);
      }
      for (int piece = 0; piece < L::kQueryPieces; ++piece) {
        ptx::mbarrierInit(ring.pieceFull(piece), kPieceArrivals);
        ptx::mbarrierInit(ring.pieceEmpty(piece), L::kConsumerWarps);
      }
      ptx::mbarrierInitFence();
    }
    __syncthreads();
    // At most the launch bound's registers: 384 * 168, 256 * 128 or 512 * 128. Masks need more in computing
    // warps. Few columns leave more for copying warps. These need more if they convert bytes and fewer if
    // others do; runs in shared memory leave more for the computing warps.
    constexpr bool kIsLight = L::kGroups == 1;
    constexpr bool kIsLarge = Config::kValueDim > 128 || (L::kIsLong && TokenArrays<Config>::kCount == 0);
    constexpr bool kFits = !kIsSame<typename Config::Query, typename Config::Key>; // WarpQueries
    constexpr int kCopying = L::kIsTall                ? 80
                             : L::kHoldsBytes          ? 64
                             : kHasBytes<Config>       ? (kFits ? 128 : 120)
                             : Config::kValueDim <= 64 ? 104
                             : kIsLight && !kHasPositions<Config, Variant> && Config::kValueDim == 128 ? 64
                             : kIsLight || kIsLarge || WarpRows<Config, Variant>::kCapsLate            ? 72
                             : Variant::kHasMask                                                       ? 88
                                                                                                       : 80;
    constexpr int kComputing = kIsLight     ? 256 - kCopying
                               : L::kIsTall ? (512 - kCopying) / 24 * 8
                                            : (504 - kCopying) / 16 * 8;
    if (threadIdx.x < 128) {
      ptx::keepRegisters<kCopying>();
      Copying(args, params, ring).run(first);
    } else {
      ptx::takeRegisters<kComputing>();
      Consumer<Config, Variant>::run(args, params, ring);
      // Blocks without a unit wait as well, for later kernels' sake. In copying warps this would spill.
      WarpRows<Config, Variant>::awaitQueries();
    }
  }
};

} // namespace deft::sm90
