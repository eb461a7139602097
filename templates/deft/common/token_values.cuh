#pragma once

#include "deft/common/formed_scores.cuh"

/// Arrays over tokens that a variant's hooks read. The elements for a tile's tokens are stored with their
/// records; they are copied along with the tile's keys. Other variants have no arrays and no cost.
namespace deft {

/// The number of arrays; none by default.
template <class Config> struct TokenArrays {
  static constexpr int kCount = 0;
};
template <class Config>
  requires(Config::kTokenParams > 0)
struct TokenArrays<Config> {
  static constexpr int kCount = Config::kTokenParams;
};

/// Bytes of a token's records and elements.
template <class Config> struct TokenBytes {
  static constexpr int kRecord = TokenRecords::kBytes + 4 * TokenArrays<Config>::kCount;
};

/// Whether the variant multiplies V by a factor for each token.
template <class Variant>
concept HasValueFactor = requires { &Variant::valueFactor; };

/// The arguments of hooks about a token.
template <class Config, class Variant, bool kHasElements = (TokenArrays<Config>::kCount > 0)>
struct TokenFacts {
  int position, depth;

  /// For a token in a tile of Config::kTileKv tokens.
  __device__ __forceinline__ TokenFacts(const TokenRecords &, int, int position, int depth)
      : position(position), depth(depth) {}

  __device__ __forceinline__ bool mask(const typename Variant::Params &params,
                                       const typename Variant::Row &row, int kvHead) const {
    return Variant::mask(params, row, position, depth, kvHead);
  }
  __device__ __forceinline__ float score(const typename Variant::Params &params,
                                         const typename Variant::Row &row, float s, int kvHead) const {
    return Variant::score(params, row, s, position, depth, kvHead);
  }
  __device__ __forceinline__ float valueFactor(const typename Variant::Params &params, int kvHead) const {
    return Variant::valueFactor(params, position, depth, kvHead);
  }
};
template <class Config, class Variant> struct TokenFacts<Config, Variant, true> {
  int position, depth;
  typename Variant::Token token;

  __device__ __forceinline__ TokenFacts(const TokenRecords &records, int index, int position, int depth)
      : position(position), depth(depth), token(Variant::token(records.elements + index, Config::kTileKv)) {}

  __device__ __forceinline__ bool mask(const typename Variant::Params &params,
                                       const typename Variant::Row &row, int kvHead) const {
    return Variant::mask(params, row, position, depth, kvHead, token);
  }
  __device__ __forceinline__ float score(const typename Variant::Params &params,
                                         const typename Variant::Row &row, float s, int kvHead) const {
    return Variant::score(params, row, s, position, depth, kvHead, token);
  }
  __device__ __forceinline__ float valueFactor(const typename Variant::Params &params, int kvHead) const {
    return Variant::valueFactor(params, position, depth, kvHead, token);
  }
};

} // namespace deft
