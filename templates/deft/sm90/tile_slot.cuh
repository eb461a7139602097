#pragma once

#include "deft/common/key_hook.cuh"
#include "deft/common/worth.cuh"
#include "deft/ptx/mbarrier.cuh"

/// What the copying warps write of a tile for those that compute.
namespace deft::sm90 {

/// No query: [first, end) is empty, and changes no hull.
constexpr unsigned kNobody = 0xffff;

/// Whether the kernel is for plans that deal tokens to warps (abi::Item): others would pay for it.
template <class Config>
constexpr bool kReadsDealt = Config::kIsDealt && Config::kKeyDim <= 128 && Config::kValueDim <= 128;

/// Whether each warp takes its group of a dealt tile by itself, by mma.sync; else all do together, by wgmma:
/// in tall blocks, too.
template <class Config>
constexpr bool kDeals = kReadsDealt<Config> && Config::kRatio <= 16 && Config::kTileQ <= 128;

/// Whether tokens have positions and depths. Where nobody asks, kernels for dealt tokens need the registers.
template <class Config, class Variant>
constexpr bool kHasPositions =
    !kReadsDealt<Config> || WarpRows<Config, Variant>::kNeedsToken || kGivesWorth<Config> || HasKey<Variant>;

/// Who sees some tokens: intervals of queries as first | end << 16.
struct alignas(8) Viewed {
  unsigned anyone;   ///< the hull of the queries that see a token
  unsigned everyone; ///< the queries that see all of them

  /// Whether any of queries [lo, end) may see a token.
  __device__ __forceinline__ bool isSeen(int lo, int end) const {
    return (static_cast<int>(anyone & 0xffff) < end) & (static_cast<int>(anyone >> 16) > lo);
  }
  __device__ __forceinline__ bool isWhole(int lo, int end) const {
    return (static_cast<int>(everyone & 0xffff) <= lo) & (static_cast<int>(everyone >> 16) >= end);
  }
};

/// Of a whole tile and of each group of 16 tokens, so that the computing warps need not ask every token.
struct alignas(16) TileFacts {
  static constexpr int kGroups = 4;

  /// What is asked of each tile, by one load.
  struct alignas(16) Head {
    Viewed viewed;
    /// For who asks for them. Of a dealt tile each group is seen by the rows of its warp alone; in a rising
    /// one positions rise by one from token to token.
    enum Kind { kOther, kRising, kDealt } kind;
    int isGathered; ///< whether tokens came one by one, which wgmma does not see without a fence
  } head;
  Viewed group[kGroups];
  TokenBounds bounds; ///< of the tile, for masks only; a group's would cost more than they save
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
