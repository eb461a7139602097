#pragma once

#include "deft/ptx/dependent_launch.cuh"
#include "deft/sm90/consumer.cuh"
#include "deft/sm90/producer.cuh"

/// Attention for Hopper: persistent blocks of one copying and two computing warpgroups around a ring of
/// KV tiles. Launch with kThreads threads and one block a multiprocessor.
/// Head dims 80 to 128 (compiler/config/Legality.h says why).
namespace deft::sm90 {

template <class Config, class Variant>
__device__ __forceinline__ void attend(const abi::AttendArgs &args, const typename Variant::Params &params) {
  ptx::allowDependents();
  using Copying = Producer<Config, Variant>;
  abi::Item first{}; // on its way while the block sets itself up
  if (threadIdx.x < 128)
    first = Copying::itemOf(args, blockIdx.x);
  extern __shared__ char unaligned[];
  const unsigned begin = ptx::sharedAddress(unaligned);
  const unsigned aligned = (begin + Layout<Config>::kAlignment - 1) & ~(Layout<Config>::kAlignment - 1u);
  const Ring<Config> ring{aligned, unaligned + (aligned - begin)};
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < Config::kStages; ++stage) {
      ptx::mbarrierInit(ring.full(stage), kFullArrivals);
      ptx::mbarrierInit(ring.empty(stage), kConsumerWarps);
    }
    for (int piece = 0; piece < kQueryPieces; ++piece) {
      ptx::mbarrierInit(ring.pieceFull(piece), kFullArrivals);
      ptx::mbarrierInit(ring.pieceEmpty(piece), kConsumerWarps);
    }
    ptx::mbarrierInitFence();
  } else if (threadIdx.x / 32 == 1 && threadIdx.x % 32 < 4 && args.hasMaps) {
    ptx::prefetch(threadIdx.x % 2 == 0 ? args.kBoxes[threadIdx.x / 2 % 2] : args.vBoxes[threadIdx.x / 2 % 2]);
  }
  __syncthreads();
  // At most the 384 * 168 registers of the launch bound; masks need more of them where scores are.
  constexpr int kCopying = Variant::kHasMask ? 72 : 80, kComputing = Variant::kHasMask ? 216 : 208;
  if (threadIdx.x < 128) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCopying));
    Copying(args, params, ring).run(first);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kComputing));
    Consumer<Config, Variant>::run(args, params, ring);
  }
}

} // namespace deft::sm90
