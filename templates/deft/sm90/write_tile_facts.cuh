#pragma once

#include "deft/sm90/run_window.cuh"
#include "deft/sm90/tile_slot.cuh"

/// Computes the facts of a tile for the computing warps from its tokens.
namespace deft::sm90 {

/// The viewers of some tokens: intervals of queries as first | end << 16.
struct Viewers {
  unsigned hull, common;

  __device__ __forceinline__ explicit Viewers(const Token &token)
      : hull(token.visible), common(token.visible) {}

  __device__ __forceinline__ void add(const Viewers &other) {
    hull = min(hull & 0xffff, other.hull & 0xffff) | max(hull >> 16, other.hull >> 16) << 16;
    common = max(common & 0xffff, other.common & 0xffff) | min(common >> 16, other.common >> 16) << 16;
  }
  /// Adds the tokens of the lane at this distance.
  __device__ __forceinline__ void addLane(int distance) {
    Viewers other = *this;
    other.hull = __shfl_xor_sync(~0u, hull, distance);
    other.common = __shfl_xor_sync(~0u, common, distance);
    add(other);
  }
  __device__ __forceinline__ Viewed viewed() const { return {hull, common}; }
};

/// Whether in each group of 16 the same queries see all tokens.
__device__ __forceinline__ bool areGroupsAlike(const Viewers &low, const Viewers &high, int lane) {
  const unsigned ofLow = __shfl_sync(~0u, low.hull, lane & 16);
  const unsigned ofHigh = __shfl_sync(~0u, high.hull, lane & 16);
  return __all_sync(~0u, low.hull == ofLow && high.hull == ofHigh);
}

/// Writes the viewers of each group of 16; lane 0 returns those of all. A lane has two tokens, 32 apart.
template <class Config>
__device__ __forceinline__ Viewed writeViewers(TileFacts &facts, const Token (&token)[2], bool isDealt,
                                               int lane) {
  constexpr int kGroup = 16;
  Viewers low(token[0]), high(token[1]);
  const unsigned first = __shfl_sync(~0u, low.hull, 0);
  // If the same queries see all tokens, no reduction is needed.
  const bool areAlike = __all_sync(~0u, low.hull == first && high.hull == first);
  if (!areAlike && !(kReadsDealt<Config> && isDealt && areGroupsAlike(low, high, lane))) {
#pragma unroll
    for (int distance = 1; distance < kGroup; distance *= 2) {
      low.addLane(distance);
      high.addLane(distance);
    }
  }
  if (lane % kGroup == 0) {
    facts.group[lane / kGroup] = low.viewed();
    facts.group[2 + lane / kGroup] = high.viewed();
  }
  low.add(high);
  low.addLane(kGroup);
  return low.viewed();
}

/// Whether positions rise by one from token to token.
__device__ __forceinline__ bool doRise(const Token (&token)[2], int lane) {
  const int first = __shfl_sync(~0u, token[0].position, 0) + lane;
  return __all_sync(~0u, token[0].position == first && token[1].position == first + 32);
}

/// Writes all facts, by one warp. `bounds`: the bounds of the tokens, if masks need them.
template <class Config, class Variant>
__device__ __forceinline__ void writeTileFacts(TileSlot &slot, const Token (&token)[2],
                                               const TokenBounds &bounds, bool isGathered, bool isDealt,
                                               int lane) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int index = half * 32 + lane;
    slot.visible[index] = token[half].visible;
    if constexpr (kHasPositions<Config, Variant>) {
      slot.position[index] = token[half].position;
      slot.depth[index] = token[half].depth;
    }
  }
  constexpr bool kRises = WarpRows<Config, Variant>::kRises;
  TileFacts::Head head{writeViewers<Config>(slot.facts, token, isDealt, lane), TileFacts::Head::kOther,
                       isGathered};
  const bool isRising = kRises && doRise(token, lane);
  if (lane == 0) {
    if constexpr (kRises || kDeals<Config>)
      head.kind = kDeals<Config> && isDealt ? TileFacts::Head::kDealt
                  : isRising                ? TileFacts::Head::kRising
                                            : TileFacts::Head::kOther;
    slot.facts.head = head;
    if constexpr (Variant::kHasMask)
      slot.facts.bounds = bounds;
  }
}

} // namespace deft::sm90
