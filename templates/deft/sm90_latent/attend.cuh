#pragma once

#include "deft/common/plan_ahead.cuh"
#include "deft/ptx/block.cuh"
#include "deft/ptx/dependent_launch.cuh"
#include "deft/sm90_latent/byte_producer.cuh"
#include "deft/sm90_latent/consumer.cuh"
#include "deft/sm90_latent/few_rows.cuh"
#include "deft/sm90_latent/producer.cuh"

/// Persistent blocks of one or two copying warpgroups and two computing ones. Each computing warpgroup sums
/// half of V's columns for all 64 rows, and makes the weights of every other tile for both. If units have at
/// most 16 rows, each warpgroup takes every other tile alone (few_rows.cuh).
namespace deft::sm90_latent {

template <class Config, class Variant, bool = kIsOfBytes<Config>> struct CopyingOf {
  using Type = Producer<Config, Variant>;
};
template <class Config, class Variant> struct CopyingOf<Config, Variant, true> {
  using Type = ByteProducer<Config, Variant>;
};

template <class Config, class Variant, bool = kHasFewRows<Config>> struct ComputingOf {
  using Type = Consumer<Config, Variant>;
};
template <class Config, class Variant> struct ComputingOf<Config, Variant, true> {
  using Type = FewRows<Config, Variant>;
};

template <class Config, class Variant> class Attend {
  using Copying = typename CopyingOf<Config, Variant>::Type;
  using Computing = typename ComputingOf<Config, Variant>::Type;
  using L = Layout<Config>;
  static constexpr int kCopying = 32 * kCopyingWarps<Config>,
                       kComputing = 128 * kComputingGroups; ///< threads

public:
  static __device__ __forceinline__ void run(const abi::AttendArgs &args,
                                             const typename Variant::Params &params) {
    ptx::allowDependents();
    abi::Item first{}; // the load overlaps the block's setup
    if (threadIdx.x < kCopying)
      first = Copying::itemOf(args, blockIdx.x);
    else
      askForPlan(args, threadIdx.x - kCopying, kComputing);
    char *unaligned = ptx::dynamicShared<16>();
    const unsigned begin = ptx::sharedAddress(unaligned);
    const unsigned aligned = (begin + L::kAlignment - 1) & ~(L::kAlignment - 1u);
    const Ring<Config> ring{aligned, unaligned + (aligned - begin)};
    if (threadIdx.x / 32 < 3)
      Copying::prefetchMaps(args);
    else if (threadIdx.x == 3 * 32)
      ring.init();
    __syncthreads();
    // The warpgroups share the registers of the launch. A request for more would never return: a warpgroup
    // waits for its registers until the others have released enough.
    constexpr int kEach = (1 << 16) / (kCopying + kComputing) / 8 * 8;
    constexpr int kCopyingRegisters = kCopiesConvert<Config> ? 48 : 72;
    constexpr int kComputingRegisters = (kEach + (kEach - kCopyingRegisters) * kCopying / kComputing) / 8 * 8;
    if (threadIdx.x < kCopying) {
      ptx::keepRegisters<kCopyingRegisters>();
      Copying(args, params, ring).run(first);
    } else {
      ptx::takeRegisters<kComputingRegisters>();
      computeUnits(args, params, ring);
      // Blocks without a unit wait as well: later kernels rely on the end of the queries' maker.
      WarpRows<Config, Variant>::awaitQueries();
    }
  }

private:
  /// Attends to the units of the block in turn. The last bit of a unit's number is enough to find its data.
  static __device__ __forceinline__ void computeUnits(const abi::AttendArgs &args,
                                                      const typename Variant::Params &params,
                                                      const Ring<Config> &ring) {
    int step = 0;
    for (int odd = 0;; odd ^= 1) {
      ptx::mbarrierWait(ring.queriesFull(), odd);
      if (ring.head(odd).endStep == step)
        break; // no unit is left
      step = Computing(args, params, ring, odd).attend(step);
    }
  }
};

} // namespace deft::sm90_latent
