#pragma once

/// Element types as tags: 16 bits in memory, or 8, arithmetic by the instructions named in deft/ptx. The
/// toolkit's own half headers are not used, because they double the time of a compilation.
namespace deft {

struct f16 {
  unsigned short bits;
};
struct bf16 {
  unsigned short bits;
};
/// 8 bits, of caches only.
struct e4m3 {
  unsigned char bits;
};
struct e5m2 {
  unsigned char bits;
};

template <class A, class B> constexpr bool kIsSame = false; // NVRTC has no standard library
template <class A> constexpr bool kIsSame<A, A> = true;

/// What an element is in products, whose factors have 16 bits: f16 has all numbers of both 8-bit types.
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
/// Whether it must be converted to one.
template <class Element> constexpr bool kIsConverted = !kIsSame<Element, Factor<Element>>;

/// What weights are taken to be as exact as: V's elements, or q's where these are converted.
template <class Query, class Value, bool = kIsConverted<Value>> struct WeightOf {
  using Type = Value;
};
template <class Query, class Value> struct WeightOf<Query, Value, true> {
  using Type = Query;
};
/// V's elements as the cache has them, where a config stands for one of bytes (sm90/byte_cache.cuh), too.
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

/// What partials are stored as. Averages of values have the values' range, but a sum has at most the
/// output's: f16 where both are f16, else bf16.
template <class Value, class Output> struct PartialOf {
  using Type = bf16;
};
template <> struct PartialOf<f16, f16> {
  using Type = f16;
};
template <class Config> using Partial = typename PartialOf<Weight<Config>, typename Config::Output>::Type;

/// The largest exponent of two that a weight may have, which is of V's type in products: f16 ends below 2^16,
/// and bf16 has the range of f32, of which sums need a part.
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

/// Whether the cache is latent: of one KV head, whose tokens' values are the first columns of their keys. Its
/// query heads go to blocks in groups, which stand where KV heads do elsewhere (kKvHeads, kRatio).
template <class Config> constexpr bool kIsLatent = requires { requires Config::kIsLatent; };
/// The KV head of such a place, as hooks know it.
template <class Config> __device__ __forceinline__ constexpr int kvHeadForHooks(int kvHead) {
  return kIsLatent<Config> ? 0 : kvHead;
}

/// What is in a score of the form cap * tanh(rate * s) + slope * (kv_pos - origin). A variant says whether it
/// is capped, s standing in place of the product else, and whether it is sloped.
struct ScoreForm {
  float cap, rate, slope;
  int origin;
};

/// What a variant's mask leaves of a tile. Always sound: `any` may be true and `all` false of any tile.
struct TileVisibility {
  bool any; ///< some pair of row and token may be visible
  bool all; ///< every pair is visible
};

} // namespace deft
