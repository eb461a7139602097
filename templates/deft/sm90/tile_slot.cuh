#pragma once

#include "deft/ptx/mbarrier.cuh"
#include "deft/warp_rows.cuh"

/// What the copying warps tell of a tile.
namespace deft::sm90 {

/// No query: [first, end) is empty, and changes no hull.
constexpr unsigned kNobody = 0xffff;

/// Of each group of 16 tokens, so that the computing warps need not ask every token.
struct alignas(16) TileFacts {
  static constexpr int kGroups = 4;

  unsigned anyone[kGroups];   ///< the hull of the queries that see a token: first | end << 16
  unsigned everyone[kGroups]; ///< the queries that see all of them
  int kvLo[kGroups], kvHi[kGroups], depthLo[kGroups], depthHi[kGroups]; ///< for masks only

  /// Whether any of queries [lo, end) may see a token of the group.
  __device__ __forceinline__ bool isSeen(int group, int lo, int end) const {
    return static_cast<int>(anyone[group] & 0xffff)<end &&static_cast<int>(anyone[group] >> 16)> lo;
  }
  __device__ __forceinline__ bool isWhole(int group, int lo, int end) const {
    return static_cast<int>(everyone[group] & 0xffff) <= lo && static_cast<int>(everyone[group] >> 16) >= end;
  }
  __device__ __forceinline__ bool isSeen(int lo, int end) const {
    return isSeen(0, lo, end) || isSeen(1, lo, end) || isSeen(2, lo, end) || isSeen(3, lo, end);
  }
  __device__ __forceinline__ bool isWhole(int lo, int end) const {
    return isWhole(0, lo, end) && isWhole(1, lo, end) && isWhole(2, lo, end) && isWhole(3, lo, end);
  }
  __device__ __forceinline__ TokenBounds bounds(int group) const {
    return {kvLo[group], kvHi[group], depthLo[group], depthHi[group]};
  }
  __device__ __forceinline__ TokenBounds bounds() const {
    return {min(min(kvLo[0], kvLo[1]), min(kvLo[2], kvLo[3])),
            max(max(kvHi[0], kvHi[1]), max(kvHi[2], kvHi[3])),
            min(min(depthLo[0], depthLo[1]), min(depthLo[2], depthLo[3])),
            max(max(depthHi[0], depthHi[1]), max(depthHi[2], depthHi[3]))};
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
