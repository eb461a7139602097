#pragma once

#include "deft/common/key_hook.cuh"
#include "deft/common/worth.cuh"
#include "deft/ptx/mbarrier.cuh"

/// The data about a tile that the copying warps write for the computing ones.
namespace deft::sm90 {

/// No query: the interval [first, end) is empty and does not change a hull.
constexpr unsigned kNobody = 0xffff;

/// Whether the kernel supports plans that deal tokens to warps (abi::Item): other kernels avoid the cost.
template <class Config>
constexpr bool kReadsDealt = Config::kIsDealt && Config::kKeyDim <= 128 && Config::kValueDim <= 128;

/// Whether each warp multiplies its own group of a dealt tile by mma.sync. Otherwise all multiply the whole
/// tile by wgmma, as in tall blocks.
template <class Config>
constexpr bool kDeals = kReadsDealt<Config> && Config::kRatio <= 16 && Config::kTileQ <= 128;

/// Whether tokens have positions and depths. Kernels for dealt tokens need the registers if unused.
template <class Config, class Variant>
constexpr bool kHasPositions =
    !kReadsDealt<Config> || WarpRows<Config, Variant>::kNeedsToken || kGivesWorth<Config> || HasKey<Variant>;

/// The viewers of some tokens: intervals of queries as first | end << 16.
struct alignas(8) Viewed {
  unsigned anyone;   ///< the hull of the queries that see any token
  unsigned everyone; ///< the queries that see every token

  /// Whether any query of [lo, end) may see a token.
  __device__ __forceinline__ bool isSeen(int lo, int end) const {
    return (static_cast<int>(anyone & 0xffff) < end) & (static_cast<int>(anyone >> 16) > lo);
  }
  __device__ __forceinline__ bool isWhole(int lo, int end) const {
    return (static_cast<int>(everyone & 0xffff) <= lo) & (static_cast<int>(everyone >> 16) >= end);
  }
};

/// Facts of a tile and of each group of 16 tokens, so that computing warps need not check every token.
struct alignas(16) TileFacts {
  static constexpr int kGroups = 4;

  /// The part that is needed for each tile, read by one load.
  struct alignas(16) Head {
    Viewed viewed;
    /// Set only if the kernel uses it. In a dealt tile, only the rows of its own warp see a group. In a
    /// rising tile, positions rise by one from token to token.
    enum Kind { kOther, kRising, kDealt } kind;
    int isGathered; ///< whether tokens were copied one by one: wgmma then needs a fence
  } head;
  Viewed group[kGroups];
  TokenBounds bounds; ///< of the tile, only for masks; for each group they would cost more than they save
};

struct alignas(16) TileSlot {
  static constexpr int kTokens = 64;

  TileFacts facts;
  unsigned visible[kTokens];
  int position[kTokens];
  int depth[kTokens];

  __device__ __forceinline__ TokenRecords records() { return TokenRecords(visible, kTokens); }
};

} // namespace deft::sm90
