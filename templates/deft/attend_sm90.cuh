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
  extern __shared__ char unaligned[];
  constexpr unsigned long long kMask = Layout<Config>::kAlignment - 1;
  char *shared = reinterpret_cast<char *>((reinterpret_cast<unsigned long long>(unaligned) + kMask) & ~kMask);
  const Ring<Config> ring{ptx::sharedAddress(shared), shared};
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < Config::kStages; ++stage) {
      ptx::mbarrierInit(ring.full(stage), kFullArrivals);
      ptx::mbarrierInit(ring.empty(stage), kConsumerWarps);
    }
    ptx::mbarrierInitFence();
  }
  __syncthreads();
  // 128 * 72 + 256 * 216 registers are what the launch bound's 384 * 168 were; hooks need more of them where
  // scores are.
  constexpr bool kHasHooks = Variant::kHasMask || Variant::kHasScore;
  if (threadIdx.x < 128) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kHasHooks ? 56 : 72));
    Producer<Config, Variant>(args, ring).run();
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kHasHooks ? 224 : 216));
    Consumer<Config, Variant>::run(args, params, ring);
  }
}

} // namespace deft::sm90
