#pragma once

#include "templates/deft/abi.h"

#include <array>
#include <span>

/// Items whose tokens are dealt to the warps of family sm90 (abi::Item).
namespace deft::plan {

/// Rows that a warp of any kernel has at a time; of family sm90, tokens of a tile, the warps that these are
/// dealt to, and how many each has of one.
constexpr int kWarpRows = 16, kTileTokens = 64, kDealtWarps = 4, kGroupTokens = 16;

/// Of an item some of which is dealt: kernels multiply such numbers.
constexpr int kMostDealtTiles = 1 << 14;

/// The warp whose rows alone see the run; -1: there are several, or it has a slope, and parts of it might be
/// one warp's.
inline int ownerOf(const abi::Run &run, int ratio) {
  const auto warpOf = [](int row) { return static_cast<int>(static_cast<unsigned>(row) / kWarpRows); };
  const int first = warpOf(run.queryBegin * ratio);
  return int{first == warpOf(run.queryEnd * ratio - 1)} & int{run.slope == 0} ? first : -1;
}

/// Whether some of the warps have none of an item's rows.
inline bool haveFewerWarps(int rows) { return rows <= (kDealtWarps - 1) * kWarpRows; }
/// Whether tokens of an item of so many rows may be dealt: all of the warps have some of them.
inline bool haveAllWarps(int rows) { return !haveFewerWarps(rows) && rows <= kDealtWarps * kWarpRows; }

/// Where the runs of each warp begin among the item's, and where the last one's end.
std::array<int, kDealtWarps + 1> dealtBegins(std::span<const abi::Run> runs);

/// Writes into the item what follows from its runs, some of them dealt.
void countDealt(abi::Item &item, std::span<const abi::Run> runs);

/// Whether what an item with dealt tokens says of its runs may be relied on.
bool isDealtRight(const abi::Item &item, std::span<const abi::Run> runs);

} // namespace deft::plan
