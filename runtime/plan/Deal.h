#pragma once

#include "templates/deft/abi.h"

#include <array>
#include <span>

/// Items that deal tokens to single warps in family sm90 (see abi::Item).
namespace deft::plan {

/// Rows of a warp at a time in any kernel. In family sm90: tokens of a tile, warps that tokens are dealt to,
/// and tokens of a dealt tile for each warp.
constexpr int kWarpRows = 16, kTileTokens = 64, kDealtWarps = 4, kGroupTokens = 16;

/// The most tiles of an item with dealt tokens: kernels multiply such numbers.
constexpr int kMostDealtTiles = 1 << 14;

/// The one warp whose rows see the run. -1: several warps see it, or it has a slope, so its parts may have
/// different warps.
inline int ownerOf(const abi::Run &run, int ratio) {
  const auto warpOf = [](int row) { return static_cast<int>(static_cast<unsigned>(row) / kWarpRows); };
  const int first = warpOf(run.queryBegin * ratio);
  return int{first == warpOf(run.queryEnd * ratio - 1)} & int{run.slope == 0} ? first : -1;
}

/// Whether the item has too few rows to use all warps.
inline bool haveFewerWarps(int rows) { return rows <= (kDealtWarps - 1) * kWarpRows; }
/// Whether tokens of an item with so many rows may be dealt: every warp must have some of its rows.
inline bool haveAllWarps(int rows) { return !haveFewerWarps(rows) && rows <= kDealtWarps * kWarpRows; }

/// The index of each warp's first dealt run among the item's runs, and the end of the last warp's.
std::array<int, kDealtWarps + 1> dealtBegins(std::span<const abi::Run> runs);

/// Sets the counts of an item with dealt tokens, from its runs.
void countDealt(abi::Item &item, std::span<const abi::Run> runs);

/// Whether the counts of an item with dealt tokens match its runs.
bool isDealtRight(const abi::Item &item, std::span<const abi::Run> runs);

} // namespace deft::plan
