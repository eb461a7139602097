#pragma once

#include "deft/ptx/cp_async.cuh"
#include "deft/sm90/layout.cuh"

/// Elements of arrays over tokens for a tile: a copying warp stores them after the records of the tile's
/// tokens. A lane has two tokens, 32 apart, and receives their slots.
namespace deft::sm90 {

template <class Config, class Variant> class TileElements {
  static constexpr int kCount = TokenArrays<Config>::kCount;

public:
  __device__ __forceinline__ TileElements(const typename Variant::Params &params, const Ring<Config> &ring,
                                          int lane)
      : params_(params), ring_(ring), lane_(lane) {}

  /// Copies in the same cp.async group as the tile.
  __device__ __forceinline__ void copy(const long long (&slot)[2], int kvHead, int step) const {
    forEach(slot, kvHead, [&](int i, int half, const void *element) {
      ptx::cpAsync4(ptx::sharedAddress(place(i, half, step)), element);
    });
  }

  /// The same in two steps, if the tile's memory is not free yet.
  struct Loaded {
    int of[kCount > 0 ? kCount : 1][2];
  };
  __device__ __forceinline__ void load(const long long (&slot)[2], int kvHead, Loaded &loaded) const {
    forEach(slot, kvHead, [&](int i, int half, const void *element) {
      loaded.of[i][half] = *static_cast<const int *>(element);
    });
  }
  __device__ __forceinline__ void store(const Loaded &loaded, int step) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        *place(i, half, step) = loaded.of[i][half];
  }

private:
  template <class Visit>
  __device__ __forceinline__ void forEach(const long long (&slot)[2], int kvHead, const Visit &visit) const {
    if constexpr (kCount > 0) {
#pragma unroll
      for (int half = 0; half < 2; ++half)
        Variant::forEachElement(params_, slot[half], kvHead,
                                [&](int i, const void *element) { visit(i, half, element); });
    }
  }
  __device__ __forceinline__ int *place(int i, int half, int step) const {
    return ring_.slot(step).records().elements + i * TileSlot::kTokens + half * 32 + lane_;
  }

  const typename Variant::Params &params_;
  const Ring<Config> &ring_;
  const int lane_;
};

} // namespace deft::sm90
