#pragma once

#include "deft/ptx/forget.cuh"
#include "deft/sm90/run_window.cuh"
#include "deft/sm90/tile_slot.cuh"

/// Items whose tokens are dealt to warps (abi::Item).
namespace deft::sm90 {

/// The tiles of common and dealt tokens together.
template <class Config> __device__ __forceinline__ int tilesOf(const abi::Item &item) {
  int common = item.tokens, dealtTiles = 0;
  if constexpr (kReadsDealt<Config>)
    if (item.dealtTiles > 0) {
      common = item.commonTokens;
      dealtTiles = item.dealtTiles;
    }
  return (common + Config::kTileKv - 1) / Config::kTileKv + dealtTiles;
}

/// The runs of an item: a window of 32 runs of common tokens and 8 of each warp's. A copying warp keeps them
/// in shared memory because they do not fit into registers.
template <class Config, class Variant> class DealtRuns {
  static constexpr int kGroup = 16, kWarps = 4;
  static constexpr int kCommon = 32, kOfWarp = 32 / kWarps, kRuns = kCommon + kWarps * kOfWarp;
  static constexpr int kNowhere = 0x7fffffff;
  static constexpr bool kNeedsPositions = kHasPositions<Config, Variant>;

public:
  struct Window {
    const abi::Run *runs; ///< the item's
    unsigned share;       ///< dealt tiles divided by all tiles, times 2^16, rounded up
    bool isOpen;          ///< whether the window has the warps' runs
    int first[kWarps];    ///< where each warp's tokens begin in the item
    // For the common tokens and for each warp: the first run in the window, and the end of the runs.
    int next[1 + kWarps], end[1 + kWarps];
    // For each run; entries after the last run repeat its last token.
    int tokensEnd[kRuns];    ///< kNowhere after the last run
    int place[kRuns];        ///< the place of the item's token 0 if it were in this run
    unsigned viewers[kRuns]; ///< likewise, see viewersOf
    int position[kNeedsPositions ? kRuns : 1], depth[kNeedsPositions ? kRuns : 1];
  };

  __device__ __forceinline__ DealtRuns(const abi::Run *runs, const abi::Item &item, Window &window, int lane)
      : window_(window), lane_(lane) {
    Run run(runs + min(lane, item.runCount - 1));
    const int commonEnd = item.dealtTiles > 0 ? __shfl_sync(~0u, dealtBeginOf(run.high.w), 0) : item.runCount;
    run.takeFrom(min(lane, commonEnd - 1));
    __syncwarp(); // all lanes are done with the previous item
    store(lane, lane < commonEnd, run);
    if (lane < kWarps) {
      window.next[1 + lane] = dealtBeginOf(run.high.w);
      window.end[lane] = lane == 0 ? commonEnd : dealtBeginOf(run.high.w);
    }
    window.next[0] = 0;
    window.end[kWarps] = item.runCount;
    window.runs = runs;
    const unsigned tiles = tilesOf<Config>(item);
    window.share = ((static_cast<unsigned>(item.dealtTiles) << 16) + tiles - 1) / tiles;
    window.isOpen = false;
    __syncwarp();
  }

  /// Finds a lane's two tokens of a tile, 32 apart, and whether the tile is dealt. Dealt and common tiles
  /// alternate in proportion, so both end together. Call it for tiles in order. Places after the last token
  /// repeat that token, hidden from all queries.
  __device__ __forceinline__ bool find(int tile, Token (&token)[2]) const {
    // The planner keeps the number of tiles small enough for these products.
    const unsigned share = window_.share, before = tile * share >> 16;
    const bool isDealt = (tile + 1) * share >> 16 > before;
    const int index = isDealt ? before : tile - before; // among tiles of its kind
    int lane = lane_;
    ptx::forgetHere(lane); // values that depend on it are recomputed each time, not held in registers
    if (isDealt && !window_.isOpen)
      open(lane);
#pragma unroll
    for (int half = 0; half < 2; ++half)
      findHalf(isDealt, index, half, lane, token[half]);
    return isDealt;
  }

private:
  /// The number of runs in the lane's part of the window, and the part's index.
  static __device__ __forceinline__ int countOf(bool isDealt) { return isDealt ? kOfWarp : kCommon; }
  static __device__ __forceinline__ int kindOf(bool isDealt, int lane) {
    return isDealt ? 1 + lane / kOfWarp : 0;
  }

  /// Only at the first dealt tile, so that the common tiles need not wait for the load.
  __device__ __forceinline__ void open(int lane) const {
    __syncwarp(); // all lanes have read isOpen
    const int begin = load(true, lane);
    if (lane % kOfWarp == 0)
      window_.first[lane / kOfWarp] = begin;
    window_.isOpen = true;
    __syncwarp();
  }

  __device__ __forceinline__ void findHalf(bool isDealt, int index, int half, int lane, Token &token) const {
    const int warp = 2 * half + lane / kGroup;
    for (bool isMissing = true;;) {
      const int first =
          isDealt ? window_.first[lane / kOfWarp] + index * kGroup : index * Config::kTileKv + half * 32;
      // The lanes whose runs end before the first token, of their warp or of the item.
      const unsigned ended = __ballot_sync(~0u, window_.tokensEnd[isDealt ? kCommon + lane : lane] <= first);
      const int at = isDealt ? window_.first[warp] + index * kGroup + lane % kGroup : first + lane;
      const int begin = isDealt ? kCommon + warp * kOfWarp : 0;
      const int last = begin + countOf(isDealt) - 1;
      int run = min(begin + __popc(isDealt ? ended >> warp * kOfWarp & 0xff : ended), last);
      int end = window_.tokensEnd[run];
#pragma unroll 1
      while (end <= at && run < last)
        end = window_.tokensEnd[++run];
      if (isMissing && at < end) {
        isMissing = false;
        const int into = end == kNowhere ? 0 : at;
        token.place = window_.place[run] + into;
        token.visible = visibleAt(window_.viewers[run], into);
        if constexpr (kNeedsPositions) {
          token.position = window_.position[run] + into;
          token.depth = window_.depth[run];
        }
      }
      const unsigned missing = __ballot_sync(~0u, isMissing);
      if (missing == 0)
        return;
      const bool hasOwn = lane / 16 == half; // tokens of the warp whose runs this lane holds
      const unsigned own = missing >> (lane & 8 ? kGroup : 0) & 0xffff;
      advance(isDealt, !isDealt || (hasOwn && own != 0), lane);
    }
  }

  /// `isBehind`: whether the lane must load its next run.
  __device__ __forceinline__ void advance(bool isDealt, bool isBehind, int lane) const {
    if (isBehind && lane % countOf(isDealt) == 0)
      window_.next[kindOf(isDealt, lane)] += countOf(isDealt);
    __syncwarp();
    if (isBehind)
      load(isDealt, lane);
    __syncwarp();
  }

  /// Returns the position in the item where the lane's run begins.
  __device__ __forceinline__ int load(bool isDealt, int lane) const {
    const int kind = kindOf(isDealt, lane);
    const int at = window_.next[kind] + lane % countOf(isDealt), last = window_.end[kind] - 1;
    const Run run(window_.runs + min(at, last));
    store(isDealt ? kCommon + lane : lane, at <= last, run);
    return run.low.x;
  }

  /// A run in the memory's format.
  struct Run {
    int4 low, high;
    __device__ __forceinline__ explicit Run(const abi::Run *run)
        : low(reinterpret_cast<const int4 *>(run)[0]), high(reinterpret_cast<const int4 *>(run)[1]) {}
    /// Takes the fields that `store` needs for a last run.
    __device__ __forceinline__ void takeFrom(int lane) {
      low.y = __shfl_sync(~0u, low.y, lane);
      low.z = __shfl_sync(~0u, low.z, lane);
      if constexpr (kNeedsPositions) {
        low.w = __shfl_sync(~0u, low.w, lane);
        high.x = __shfl_sync(~0u, high.x, lane);
      }
    }
  };

  /// `isThere`: false if the entry is after the last run, and `run` is the last one.
  __device__ __forceinline__ void store(int to, bool isThere, const Run &run) const {
    const int token = isThere ? -run.low.x : run.low.y - 1;
    window_.tokensEnd[to] = isThere ? run.low.x + run.low.y : kNowhere;
    window_.place[to] = run.low.z + token;
    const bool isSloped = hasSlope(run.high.w);
    window_.viewers[to] =
        isThere ? viewersOf(run.high.y + (isSloped ? token : 0), run.high.z, isSloped) : kNobody;
    if constexpr (kNeedsPositions) {
      window_.position[to] = run.low.w + token;
      window_.depth[to] = run.high.x;
    }
  }

  Window &window_;
  int lane_;
};

} // namespace deft::sm90
