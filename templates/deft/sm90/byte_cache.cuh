#pragma once

#include "deft/types.cuh"

/// A cache of 8-bit floats, which wgmma could multiply with sums of fewer bits only: its elements become
/// those of q's type on their way, so that the computing warps see the tiles that they know.
namespace deft::sm90 {

/// A config as the computing warps know it, with K and V of q's type. 16 bits hold all numbers of both 8-bit
/// types, bf16 as well as f16.
template <class Config> struct OfBytes : Config {
  using StoredKey = typename Config::Key;
  using StoredValue = typename Config::Value;
  using Key = typename Config::Query;
  using Value = typename Config::Query;
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

/// Of half a tile of K or of V, as the copying warps share it out: a lane has one of four columns of 16 bytes
/// of a token, or of two, time after time.
template <int kDim> struct BytePieces {
  static constexpr int kColumns = kDim / 16;
  static constexpr int kLow = kColumns > 2 ? 4 : kColumns; ///< columns at a time
  static constexpr int kTokens = 32 / kLow;                ///< at a time
  static constexpr int kAcross = (kColumns + kLow - 1) / kLow;
  static constexpr int kTimes = 32 / kTokens * kAcross;
  static constexpr int kBytes = kTimes * 32 * 16;
};

/// Tiles that a copying warp has bytes of: the one that is converted, and the next.
constexpr int kStagingSlots = 2;

} // namespace deft::sm90
