#pragma once

/// Element types as tags: 16 or 8 bits in memory; deft/ptx has the instructions for arithmetic. The toolkit's
/// half headers are not used, because they double the time of a compilation.
namespace deft {

struct f16 {
  unsigned short bits;
};
struct bf16 {
  unsigned short bits;
};
/// 8 bits, only in caches.
struct e4m3 {
  unsigned char bits;
};
struct e5m2 {
  unsigned char bits;
};

template <class A, class B> constexpr bool kIsSame = false; // NVRTC has no standard library
template <class A> constexpr bool kIsSame<A, A> = true;

/// An element's type in products, whose factors have 16 bits: f16 represents every value of both 8-bit types.
template <class Element> struct FactorOf {
  using Type = Element;
};
template <> struct FactorOf<e4m3> {
  using Type = f16;
};
template <> struct FactorOf<e5m2> {
  using Type = f16;
};
template <class Element> using Factor = typename FactorOf<Element>::Type;
/// Whether an element must be converted for products.
template <class Element> constexpr bool kIsConverted = !kIsSame<Element, Factor<Element>>;

/// The type whose precision weights need: that of V's elements, or of q's if V is converted.
template <class Query, class Value, bool = kIsConverted<Value>> struct WeightOf {
  using Type = Value;
};
template <class Query, class Value> struct WeightOf<Query, Value, true> {
  using Type = Query;
};
/// The type of V's elements in the cache, even if a config stands for one of bytes (sm90/byte_cache.cuh).
template <class Config> struct StoredValueOf {
  using Type = typename Config::Value;
};
template <class Config>
  requires requires { typename Config::StoredValue; }
struct StoredValueOf<Config> {
  using Type = typename Config::StoredValue;
};
template <class Config>
using Weight = typename WeightOf<typename Config::Query, typename StoredValueOf<Config>::Type>::Type;

/// The type of stored partials. Averages of values have the values' range, but a sum may only have the
/// output's range: f16 if both are f16, otherwise bf16.
template <class Value, class Output> struct PartialOf {
  using Type = bf16;
};
template <> struct PartialOf<f16, f16> {
  using Type = f16;
};
template <class Config> using Partial = typename PartialOf<Weight<Config>, typename Config::Output>::Type;

/// The largest exponent of two for a weight of V's type in products. f16 ends below 2^16. bf16 has the range
/// of f32, and sums need a part of it.
template <class Value> constexpr float kWeightBits = 15.f;
template <> constexpr float kWeightBits<bf16> = 60.f;

constexpr float kLog2e = 1.4426950408889634f;
constexpr float kLn2 = 0.6931471805599453f;
constexpr float kInfinity = __builtin_bit_cast(float, 0x7f800000u); // NVRTC has no __builtin_huge_valf

/// Bounds of a tile's rows and tokens, all inclusive.
struct TileBounds {
  int qLo, qHi;   ///< q_pos
  int kvLo, kvHi; ///< kv_pos
  int depthLo, depthHi;
  int queryLo, queryHi; ///< caller's index
  int headLo, headHi;
  int kvHead;
};

/// Whether the cache is latent: it has one KV head, and a token's value is the first columns of its key.
/// Blocks take its query heads in groups, which replace KV heads elsewhere (kKvHeads, kRatio).
template <class Config> constexpr bool kIsLatent = requires { requires Config::kIsLatent; };
/// The KV head at such a place, as hooks expect it.
template <class Config> __device__ __forceinline__ constexpr int kvHeadForHooks(int kvHead) {
  return kIsLatent<Config> ? 0 : kvHead;
}

/// The coefficients of a score cap * tanh(rate * s) + slope * (kv_pos - origin). A variant says whether it is
/// capped (otherwise s replaces the first term) and whether it is sloped.
struct ScoreForm {
  float cap, rate, slope;
  int origin;
};

/// A tile's visibility by a variant's mask. Conservative: `any` true and `all` false is always valid.
struct TileVisibility {
  bool any; ///< some pair of row and token may be visible
  bool all; ///< every pair is visible
};

} // namespace deft
