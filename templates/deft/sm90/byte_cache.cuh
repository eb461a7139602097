#pragma once

#include "deft/types.cuh"

/// A cache of 8-bit floats. wgmma would multiply these with less precise sums, so its elements are converted
/// to 16-bit factors first.
namespace deft::sm90 {

/// The type of converted elements: the queries' type, or f16, which saves one of two instructions. f16 needs
/// queries that are fitted to it in registers (WarpQueries). Blocks of few columns have no registers left for
/// that.
template <class Config> struct ByteFactor {
  using Type = typename Config::Query;
};
template <class Config>
  requires(Config::kKeyDim > 64 && Config::kKeyDim <= 128)
struct ByteFactor<Config> {
  using Type = f16;
};

/// A config for the products: K and V have 16 bits, which represent every value of both 8-bit types.
template <class Config> struct OfBytes : Config {
  using StoredKey = typename Config::Key;
  using StoredValue = typename Config::Value;
  using Key = typename ByteFactor<Config>::Type;
  using Value = Key;
};
template <class Config, bool = kIsConverted<typename Config::Key>> struct FactoredOf {
  using Type = Config;
};
template <class Config> struct FactoredOf<Config, true> {
  using Type = OfBytes<Config>;
};
template <class Config> using Factored = typename FactoredOf<Config>::Type;

/// Whether the config stands for one with a cache of bytes.
template <class Config> constexpr bool kHasBytes = requires { typename Config::StoredKey; };

/// The cache's type for elements of K; elements of V have the same size.
template <class Config> struct StoredKeyOf {
  using Type = typename Config::Key;
};
template <class Config>
  requires kHasBytes<Config>
struct StoredKeyOf<Config> {
  using Type = typename Config::StoredKey;
};

/// How warps divide half a tile of K or V into pieces: in each round, a lane has one of four 16-byte columns
/// of a token (or of two columns).
template <int kDim> struct BytePieces {
  static constexpr int kColumns = kDim / 16;
  static constexpr int kLow = kColumns > 2 ? 4 : kColumns; ///< columns at a time
  static constexpr int kTokens = 32 / kLow;                ///< in a round
  static constexpr int kAcross = (kColumns + kLow - 1) / kLow;
  static constexpr int kTimes = 32 / kTokens * kAcross;
  static constexpr int kBytes = kTimes * 32 * 16;
};

/// Tiles whose bytes a converting warp holds: the one that it converts, and the next one.
constexpr int kStagingSlots = 2;

} // namespace deft::sm90
