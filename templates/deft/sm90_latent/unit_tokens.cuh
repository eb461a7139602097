#pragma once

#include "deft/common/given_lists.cuh"
#include "deft/common/row_place.cuh"
#include "deft/ptx/prefetch.cuh"
#include "deft/select_abi.h"
#include "deft/sm90/run_window.cuh"
#include "deft/sm90/tile_slot.cuh"
#include "deft/sm90_latent/layout.cuh"
#include "deft/sm90_latent/tile_runs.cuh"

/// Where a copying warp finds a unit's tokens: in the item's runs, or in a list from the caller. A lane has
/// two tokens of each tile, 32 apart. Places after the last token repeat one of the unit, hidden.
namespace deft::sm90_latent {

/// Whether tokens are slots of the cache, and not places in a page table.
template <class Config> constexpr bool kHasSlots = kListsAreGiven<Config>;

/// Marks a token that no query sees: an empty interval of queries, or no bits for unions.
template <class Config> constexpr unsigned kUnseen = kReadsUnions<Config> ? 0u : sm90::kNobody;

/// Caches of bytes are copied by warps that find whole tiles.
template <bool> struct RunsOf {
  using Type = sm90::RunWindow;
};
template <> struct RunsOf<true> {
  using Type = TileRuns;
};

template <class Config, class Variant, bool = kHasSlots<Config>> class UnitTokens {
public:
  __device__ __forceinline__ UnitTokens(const abi::AttendArgs &args, const abi::Item &item, int lane)
      : runs_(args.runs + item.runBegin, item.runCount, lane), lane_(lane) {}

  __device__ __forceinline__ void find(int index, int tokens, sm90::Token (&token)[2]) {
    if constexpr (kOfBytes)
      runs_.find(index * Config::kTileKv, tokens - 1, token);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int first = index * Config::kTileKv + half * 32;
      if constexpr (!kOfBytes)
        token[half] = runs_.find(first, tokens - 1);
      if (first + lane_ >= tokens)
        token[half].visible = kUnseen<Config>;
    }
  }

private:
  static constexpr bool kOfBytes = kCopyingWarps<Config> != 4;
  typename RunsOf<kOfBytes>::Type runs_;
  const int lane_;
};

/// An item's part of its only query's list (select_abi.h defines such items). At places without a token, a
/// token of the list in the same tile stands in: other places of the cache may hold NaN, which even a weight
/// of 0 does not remove.
template <class Config, class Variant> class UnitTokens<Config, Variant, true> {
public:
  __device__ __forceinline__ UnitTokens(const abi::AttendArgs &args, const abi::Item &item, int lane)
      : list_(args.pageTable + static_cast<long long>(item.runBegin) * args.selected->budget +
              item.commonTokens),
        lane_(lane) {
    constexpr int kOfLine = 32; // entries in a cache line
    if (lane * kOfLine < item.tokens)
      ptx::prefetch(reinterpret_cast<const char *>(list_ + lane * kOfLine));
  }

  __device__ __forceinline__ void find(int index, int tokens, sm90::Token (&token)[2]) const {
    int slot[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int at = index * Config::kTileKv + half * 32 + lane_;
      slot[half] = at < tokens ? list_[at] : -1;
    }
    const unsigned low = __ballot_sync(~0u, slot[0] >= 0), high = __ballot_sync(~0u, slot[1] >= 0);
    const int first = __ffs(static_cast<int>(low != 0 ? low : high)) - 1;
    const int standIn = __shfl_sync(~0u, low != 0 ? slot[0] : slot[1], max(first, 0));
#pragma unroll
    for (int half = 0; half < 2; ++half)
      token[half] = slot[half] >= 0 ? sm90::Token{slot[half], 0, 0, sm90::viewersOf(0, 1, false)}
                                    : sm90::Token{max(standIn, 0), 0, 0, kUnseen<Config>};
  }

private:
  const int *list_;
  const int lane_;
};

} // namespace deft::sm90_latent
