#pragma once

#include "deft/ptx/forget.cuh"
#include "deft/sm90/run_window.cuh"
#include "deft/sm90/tile_slot.cuh"

/// Items whose tokens are dealt to warps (abi::Item).
namespace deft::sm90 {

/// Those of the common tokens and the dealt ones.
template <class Config> __device__ __forceinline__ int tilesOf(const abi::Item &item) {
  int common = item.tokens, dealtTiles = 0;
  if constexpr (kReadsDealt<Config>)
    if (item.dealtTiles > 0) {
      common = item.commonTokens;
      dealtTiles = item.dealtTiles;
    }
  return (common + Config::kTileKv - 1) / Config::kTileKv + dealtTiles;
}

/// The runs of an item: 32 of the common tokens' and 8 of each warp's at a time. A copying warp has them in
/// shared memory, because there are no registers for so many.
template <class Config, class Variant> class DealtRuns {
  static constexpr int kGroup = 16, kWarps = 4;
  static constexpr int kCommon = 32, kOfWarp = 32 / kWarps, kRuns = kCommon + kWarps * kOfWarp;
  static constexpr int kNowhere = 0x7fffffff;
  static constexpr bool kNeedsPositions = kHasPositions<Config, Variant>;

public:
  struct Window {
    const abi::Run *runs; ///< the item's
    unsigned share;       ///< of dealt tiles among all, times 2^16, rounded up
    bool isOpen;          ///< whether runs of each warp are here
    int first[kWarps];    ///< where the tokens of each warp begin in the item
    // Of the common tokens and of each warp's: which of their runs the window has first, and where they end.
    int next[1 + kWarps], end[1 + kWarps];
    // Of each run; behind the last one there is that one's last token.
    int tokensEnd[kRuns];    ///< kNowhere behind the last one
    int place[kRuns];        ///< of the item's token 0, were it the run's
    unsigned viewers[kRuns]; ///< likewise, see viewersOf
    int position[kNeedsPositions ? kRuns : 1], depth[kNeedsPositions ? kRuns : 1];
  };

  __device__ __forceinline__ DealtRuns(const abi::Run *runs, const abi::Item &item, Window &window, int lane)
      : window_(window), lane_(lane) {
    Run run(runs + min(lane, item.runCount - 1));
    const int commonEnd = item.dealtTiles > 0 ? __shfl_sync(~0u, dealtBeginOf(run.high.w), 0) : item.runCount;
    run.takeFrom(min(lane, commonEnd - 1));
    __syncwarp(); // the item before is done with
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

  /// A lane's two tokens of a tile, 32 apart, and whether it is dealt: both kinds of tiles take turns, so
  /// that they end together. Tiles come in their order. Behind the last token it is that one again, and
  /// nobody sees it.
  __device__ __forceinline__ bool find(int tile, Token (&token)[2]) const {
    // The planner sees to it that there are few enough for the products.
    const unsigned share = window_.share, before = tile * share >> 16;
    const bool isDealt = (tile + 1) * share >> 16 > before;
    const int index = isDealt ? before : tile - before; // among those of its kind
    int lane = lane_;
    ptx::forgetHere(lane); // what follows from it is made anew each time, and not held
    if (isDealt && !window_.isOpen)
      open(lane);
#pragma unroll
    for (int half = 0; half < 2; ++half)
      findHalf(isDealt, index, half, lane, token[half]);
    return isDealt;
  }

private:
  /// Of how many runs that come together the lane has one, and whose these are.
  static __device__ __forceinline__ int countOf(bool isDealt) { return isDealt ? kOfWarp : kCommon; }
  static __device__ __forceinline__ int kindOf(bool isDealt, int lane) {
    return isDealt ? 1 + lane / kOfWarp : 0;
  }

  /// Not before the first dealt tile: the common ones do not wait for it.
  __device__ __forceinline__ void open(int lane) const {
    __syncwarp(); // all lanes have asked whether it is open
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
      // Runs, by lanes, that end before the first token of their warp or of all.
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
      const bool hasOwn = lane / 16 == half; // tokens of the warp whose runs the lane has
      const unsigned own = missing >> (lane & 8 ? kGroup : 0) & 0xffff;
      advance(isDealt, !isDealt || (hasOwn && own != 0), lane);
    }
  }

  /// `isBehind`: whether the lane's are to be the next ones.
  __device__ __forceinline__ void advance(bool isDealt, bool isBehind, int lane) const {
    if (isBehind && lane % countOf(isDealt) == 0)
      window_.next[kindOf(isDealt, lane)] += countOf(isDealt);
    __syncwarp();
    if (isBehind)
      load(isDealt, lane);
    __syncwarp();
  }

  /// Gives where the lane's run begins in the item.
  __device__ __forceinline__ int load(bool isDealt, int lane) const {
    const int kind = kindOf(isDealt, lane);
    const int at = window_.next[kind] + lane % countOf(isDealt), last = window_.end[kind] - 1;
    const Run run(window_.runs + min(at, last));
    store(isDealt ? kCommon + lane : lane, at <= last, run);
    return run.low.x;
  }

  /// A run as it lies in memory.
  struct Run {
    int4 low, high;
    __device__ __forceinline__ explicit Run(const abi::Run *run)
        : low(reinterpret_cast<const int4 *>(run)[0]), high(reinterpret_cast<const int4 *>(run)[1]) {}
    /// What `store` asks of a last run.
    __device__ __forceinline__ void takeFrom(int lane) {
      low.y = __shfl_sync(~0u, low.y, lane);
      low.z = __shfl_sync(~0u, low.z, lane);
      if constexpr (kNeedsPositions) {
        low.w = __shfl_sync(~0u, low.w, lane);
        high.x = __shfl_sync(~0u, high.x, lane);
      }
    }
  };

  /// `isThere`: else it is the last one, for what is behind it.
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
