#pragma once

#include "deft/common/fragment.cuh"
#include "deft/ptx/convert.cuh"
#include "deft/ptx/mbarrier.cuh"
#include "deft/sm90_latent/layout.cuh"

/// Blocks for few rows keep the values of a cache of bytes as they are, in f16: converting an element takes
/// half an instruction instead of three. V's columns of the queries become f16 as well, once a unit. There
/// are few scores and weights, so these are multiplied by the factors of queries and the scales of tokens.
namespace deft::sm90_latent {

/// Converts V's columns of a unit's queries to f16, in place. Each row is multiplied by a power of two, so
/// that it fits. All computing threads call it.
template <class Config> class FewQueries {
  using L = Layout<Config>;
  using Few = FewLayout<Config>;
  using Key = typename Config::Key;
  static constexpr int kThreads = 128 * kComputingGroups / Few::kRows; ///< of a row
  static constexpr int kPieces = L::kValueBlocks * 8 / kThreads;       ///< of 16 bytes, of a thread
  static_assert(kThreads == 16 && L::kValueBlocks * 8 % kThreads == 0);

public:
  static __device__ __forceinline__ void convert(const Ring<Config> &ring, int thread) {
    if constexpr (!kIsSame<Key, f16>) {
      const int row = thread / kThreads;
      char *const first = ring.shared + L::kQueryOffset + row * 128;
      uint4 pieces[kPieces];
      unsigned largest = 0;
#pragma unroll
      for (int i = 0; i < kPieces; ++i) {
        pieces[i] = *reinterpret_cast<const uint4 *>(first + at(thread, i));
        largest = max(largest, max(max(magnitude(pieces[i].x), magnitude(pieces[i].y)),
                                   max(magnitude(pieces[i].z), magnitude(pieces[i].w))));
      }
#pragma unroll
      for (int lanes = 1; lanes < kThreads; lanes *= 2)
        largest = max(largest, __shfl_xor_sync(~0u, largest, lanes));
      const int exponent = max(static_cast<int>(largest >> 7), kLargest + 1); // both factors are normal
      const float factor = __uint_as_float(static_cast<unsigned>(2 * 127 + kLargest - exponent) << 23);
#pragma unroll
      for (int i = 0; i < kPieces; ++i)
        *reinterpret_cast<uint4 *>(first + at(thread, i)) =
            make_uint4(scaled(pieces[i].x, factor), scaled(pieces[i].y, factor), scaled(pieces[i].z, factor),
                       scaled(pieces[i].w, factor));
      if (thread % kThreads == 0)
        ring.template fewAt<float>(Few::kQueryFactorOffset)[row] =
            __uint_as_float(static_cast<unsigned>(exponent - kLargest) << 23);
      ptx::fenceAsyncProxy(); // wgmma reads them
    }
  }

  /// The factor of a row's products.
  static __device__ __forceinline__ float factorOf(const Ring<Config> &ring, int row) {
    return kIsSame<Key, f16> ? 1.f : ring.template fewAt<float>(Few::kQueryFactorOffset)[row];
  }

private:
  /// The exponent of two of a row's largest element, afterwards. f16 ends below 16; what is 2^27 times
  /// smaller still has all bits of bf16.
  static constexpr int kLargest = 12;

  static __device__ __forceinline__ int at(int thread, int i) {
    const int piece = thread % kThreads + i * kThreads;
    return piece / 8 * L::kQueryBlockBytes + piece % 8 * 16;
  }
  /// The bits of the larger one of two elements of bf16, without its sign.
  static __device__ __forceinline__ unsigned magnitude(unsigned pair) {
    return max(pair & 0x7fffu, pair >> 16 & 0x7fffu);
  }
  static __device__ __forceinline__ unsigned scaled(unsigned pair, float factor) {
    const float2 both = ptx::unpack2<Key>(pair);
    return ptx::pack2<f16>(both.x * factor, both.y * factor);
  }
};

/// The scales of a warpgroup's tokens. Weights are multiplied by scales relative to a power of two above all
/// of them so far, the unit of the warpgroup's sums. Without scales it is 1.
template <class Config, int kScales = kFewScales<Config>> class FewScales {
public:
  /// Of one token.
  struct Token {
    float of[kScales];
  };
  static __device__ __forceinline__ Token tokenOf(const Ring<Config> &ring, int step, int token) {
    static_assert(kScales == 4 && Layout<Config>::kKeepsScales);
    const float4 all = *reinterpret_cast<const float4 *>(ring.shared + ring.scales(step) + token * 16);
    return {{all.x, all.y, all.z, all.w}};
  }

  /// Whether a scale is above the unit, in any lane. `largest`: of the lane.
  __device__ __forceinline__ bool hasToGrow(float largest) const { return __any_sync(~0u, largest > unit_); }
  /// Raises the unit above the largest scale. Returns the factor for the sums so far.
  __device__ __forceinline__ float grow(float largest) {
    if (largest <= unit_)
      return 1.f;
    const int exponent = min(static_cast<int>(__float_as_uint(largest) >> 23) + 2, kMostExponent);
    const float before = unit_;
    unit_ = __uint_as_float(static_cast<unsigned>(exponent) << 23);
    inverse_ = __uint_as_float(static_cast<unsigned>(2 * 127 - exponent) << 23);
    return before * inverse_;
  }

  /// A weight times a scale. A hidden token has any scale.
  __device__ __forceinline__ float scaled(float weight, float scale) const {
    return weight == 0.f ? 0.f : weight * (scale * inverse_);
  }
  __device__ __forceinline__ float unit() const { return unit_; }

private:
  static constexpr int kMostExponent = 253; ///< whose inverse is a normal number
  float unit_ = 0.f, inverse_ = 0.f;
};

template <class Config> class FewScales<Config, 0> {
public:
  __device__ __forceinline__ float unit() const { return 1.f; }
};

} // namespace deft::sm90_latent
