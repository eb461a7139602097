#pragma once

#include "deft/types.cuh"

/// A cache of 8-bit floats, which wgmma could multiply with sums of fewer bits only: its elements become
/// factors of 16 bits before that.
namespace deft::sm90 {

/// What its elements become: what queries are, but f16, which takes one instruction for two, where queries of
/// another type can be fitted to it (WarpQueries): in registers, of which blocks of few columns have none
/// left.
template <class Config> struct ByteFactor {
  using Type = typename Config::Query;
};
template <class Config>
  requires(Config::kKeyDim > 64 && Config::kKeyDim <= 128)
struct ByteFactor<Config> {
  using Type = f16;
};

/// A config as products know it, with K and V of 16 bits, which hold all numbers of both 8-bit types.
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

/// Whether it stands for one of bytes.
template <class Config> constexpr bool kHasBytes = requires { typename Config::StoredKey; };

/// What the cache has of K; elements of V are as large.
template <class Config> struct StoredKeyOf {
  using Type = typename Config::Key;
};
template <class Config>
  requires kHasBytes<Config>
struct StoredKeyOf<Config> {
  using Type = typename Config::StoredKey;
};

/// Of half a tile of K or of V, as warps share it out: a lane has one of four columns of 16 bytes of a token,
/// or of two, time after time.
template <int kDim> struct BytePieces {
  static constexpr int kColumns = kDim / 16;
  static constexpr int kLow = kColumns > 2 ? 4 : kColumns; ///< columns at a time
  static constexpr int kTokens = 32 / kLow;                ///< at a time
  static constexpr int kAcross = (kColumns + kLow - 1) / kLow;
  static constexpr int kTimes = 32 / kTokens * kAcross;
  static constexpr int kBytes = kTimes * 32 * 16;
};

/// Tiles that a copying warp has bytes of where it converts them: the one that is converted, and the next.
constexpr int kStagingSlots = 2;

} // namespace deft::sm90
