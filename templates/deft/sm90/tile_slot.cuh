#pragma once

#include "deft/ptx/mbarrier.cuh"
#include "deft/warp_rows.cuh"

/// What the copying warps tell of a tile.
namespace deft::sm90 {

/// No query: [first, end) is empty, and changes no hull.
constexpr unsigned kNobody = 0xffff;

/// Whether the kernel is for plans that deal tokens to warps (abi::Item): others would pay for it.
template <class Config> constexpr bool kReadsDealt = Config::kIsDealt && Config::kHeadDim <= 128;

/// Whether each warp takes its group of a dealt tile by itself, by mma.sync; else all do together, by wgmma.
/// Not where queries stay in shared memory, nor in light blocks where slopes or a late cap leave too few
/// registers.
template <class Config, class Variant>
constexpr bool kDeals =
    kReadsDealt<Config> && Config::kRatio <= 16 && Config::kHeadDim >= 80 && Config::kHeadDim <= 128 &&
    (Config::kWarps == 12 || (!WarpRows<Config, Variant>::kCapsLate && !WarpRows<Config, Variant>::kRises));

/// Whether tokens have positions and depths. Where nobody asks, kernels for dealt tokens need the registers.
template <class Config, class Variant>
constexpr bool kHasPositions = !kReadsDealt<Config> || WarpRows<Config, Variant>::kNeedsRow;

/// Of each group of 16 tokens and of the whole tile, so that the computing warps need not ask every token.
struct alignas(16) TileFacts {
  static constexpr int kGroups = 4;
  static constexpr int kTile = kGroups; ///< the tile's place among the groups

  unsigned anyone[kGroups + 1];   ///< the hull of the queries that see a token: first | end << 16
  unsigned everyone[kGroups + 1]; ///< the queries that see all of them
  TokenBounds bounds;             ///< of the tile, for masks only; a group's would cost more than they save
  /// For who asks for them. Of a dealt tile each group is seen by the rows of its warp alone; in a rising one
  /// positions rise by one from token to token.
  enum Kind { kOther, kRising, kDealt } kind;
  int isGathered; ///< whether tokens came one by one, which wgmma does not see without a fence

  /// Whether any of queries [lo, end) may see a token of the group.
  __device__ __forceinline__ bool isSeen(int group, int lo, int end) const {
    const unsigned hull = anyone[group];
    return (static_cast<int>(hull & 0xffff) < end) & (static_cast<int>(hull >> 16) > lo);
  }
  __device__ __forceinline__ bool isWhole(int group, int lo, int end) const {
    const unsigned common = everyone[group];
    return (static_cast<int>(common & 0xffff) <= lo) & (static_cast<int>(common >> 16) >= end);
  }
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
