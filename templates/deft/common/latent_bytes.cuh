#pragma once

#include "deft/ptx/convert.cuh"
#include "deft/ptx/fp8.cuh"

/// Latent caches of 8-bit floats. A token's row holds V's columns as bytes. Either the rotated columns follow
/// as bytes. Or a scale for each kScaleColumns columns of V follows, then the rotated columns in q's type.
/// Kernels multiply elements of q's type, which represents every value of both 8-bit types.
namespace deft {

/// The config for the products: if the cache has bytes, K and V have q's type.
template <class Config> struct OfLatentBytes : Config {
  using StoredKey = typename Config::Key;
  using StoredValue = typename Config::Value;
  using Key = typename Config::Query;
  using Value = Key;
};
template <class Config, bool = kIsConverted<typename Config::Key>> struct MultipliedOf {
  using Type = Config;
};
template <class Config> struct MultipliedOf<Config, true> {
  using Type = OfLatentBytes<Config>;
};
template <class Config> using Multiplied = typename MultipliedOf<Config>::Type;

/// Whether such a config stands for one with a cache of bytes, and the type of elements in the cache.
template <class Config> constexpr bool kIsOfBytes = requires { typename Config::StoredKey; };
template <class Config> struct StoredOf {
  using Type = typename Config::Key;
};
template <class Config>
  requires kIsOfBytes<Config>
struct StoredOf<Config> {
  using Type = typename Config::StoredKey;
};
template <class Config> using Stored = typename StoredOf<Config>::Type;

/// Columns of V that share a float32 scale in a token's row; 0: no scales.
template <class Config> constexpr int kScaleColumnsOf = 0;
template <class Config>
  requires requires { Config::kScaleColumns; }
constexpr int kScaleColumnsOf<Config> = Config::kScaleColumns;
template <class Config> constexpr bool kHasScales = kScaleColumnsOf<Config> > 0;

/// The number of bytes in a row of a cache of bytes.
template <class Config> struct ByteRow {
  static constexpr int kEach = kScaleColumnsOf<Config>;
  static constexpr int kScales = kEach > 0 ? Config::kValueDim / (kEach > 0 ? kEach : 1) : 0;
  static constexpr int kLatent = Config::kValueDim + 4 * kScales; ///< before the rotated columns
  static constexpr int kRope = (Config::kKeyDim - Config::kValueDim) * (kHasScales<Config> ? 2 : 1);
  static constexpr int kBytes = kLatent + kRope;
};

/// The scale of a column of V in the row at `row`.
template <class Config> __device__ __forceinline__ const float &scaleOf(const char *row, int column) {
  return *reinterpret_cast<const float *>(row + Config::kValueDim + column / kScaleColumnsOf<Config> * 4);
}

/// Converts two f16 elements to the type of products.
template <class Factor, bool kIsScaled>
__device__ __forceinline__ unsigned factorsOf(unsigned halves, float scale) {
  if constexpr (!kIsScaled && kIsSame<Factor, f16>)
    return halves;
  float2 both = ptx::unpack2<f16>(halves);
  if constexpr (kIsScaled) {
    both.x *= scale;
    both.y *= scale;
  }
  return ptx::pack2<Factor>(both.x, both.y);
}

/// Converts eight elements; `low` has the first four.
template <class Stored, class Factor, bool kIsScaled>
__device__ __forceinline__ uint4 factorsOf(unsigned low, unsigned high, float scale) {
  unsigned first[2], second[2];
  ptx::toHalves<Stored>(low, first);
  ptx::toHalves<Stored>(high, second);
  return make_uint4(
      factorsOf<Factor, kIsScaled>(first[0], scale), factorsOf<Factor, kIsScaled>(first[1], scale),
      factorsOf<Factor, kIsScaled>(second[0], scale), factorsOf<Factor, kIsScaled>(second[1], scale));
}

} // namespace deft
