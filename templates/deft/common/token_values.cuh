#pragma once

#include "deft/common/formed_scores.cuh"

/// Arrays over tokens that a variant's hooks read: of each, the elements of a tile's tokens lie with their
/// records, where the copies of the tile's keys brought them. Other variants have none, and cost nothing.
namespace deft {

/// How many there are. Configs that say nothing of it have none.
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

/// Whether V has a factor of each token.
template <class Variant>
concept HasValueFactor = requires { &Variant::valueFactor; };

/// What hooks get of a token.
template <class Config, class Variant, bool kHasElements = (TokenArrays<Config>::kCount > 0)>
struct TokenFacts {
  int position, depth;

  /// Those of a tile of Config::kTileKv tokens.
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
