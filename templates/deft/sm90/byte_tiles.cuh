#pragma once

#include "deft/sm90/byte_staging.cuh"
#include "deft/sm90/run_window.cuh"
#include "deft/sm90/tile_elements.cuh"

namespace deft::sm90 {

template <class Config, class Variant> class Producer;

/// How a copying warp fills the tiles of an 8-bit cache, in two steps: it copies, then it converts.
template <class Config, class Variant> class ByteTiles {
  using Copying = Producer<Config, Variant>;
  using L = Layout<Config>;

public:
  /// A tile whose bytes are being copied to the warp's staging, and the facts to write about it.
  struct Staged {
    Token token[2];
    TokenBounds bounds;
    bool isHidden, isDealt;
    typename TileElements<Config, Variant>::Loaded elements;
    int slot = 0;  ///< of the warp's staging
    int step = -1; ///< -1: no tile
  };

  /// Producer::copyUnit() for an 8-bit cache. The copy of a team's next tile starts before the bytes of the
  /// current tile are converted into its stage, even across units.
  static __device__ __forceinline__ void convertUnit(const Copying &by, const abi::Item &item, int kvHead,
                                                     int begin, int end, Staged &staged) {
    const ByteStaging<Config> staging(by.ring_, by.warp_, by.lane_);
    auto runs = by.runsOf(item);
    TileBounds rows = by.boundsOf(item, kvHead);
    if constexpr (Variant::kHasMask)
      by.joinLanes(rows);
    const auto ownFrom = [&](int step) {
      while (step < end && step % Config::kStages % (Copying::kWarps / L::kTeam) != by.warp_ / L::kTeam)
        ++step;
      return step;
    };
    int step = ownFrom(begin);
    typename Copying::Tile tile;
    bool isDealt = false;
    const auto look = [&] {
      if (step >= end)
        return;
      isDealt = by.find(item, runs, step - begin, tile);
      by.lookUpPages(tile);
    };
    look();
    while (step < end) {
      const TokenBounds bounds = by.boundsOf(tile);
      const bool isHidden = !by.mayBeSeen(bounds, rows);
      const int slot = staged.slot ^ 1;
      if (!isHidden) {
        const auto low = by.placeOf(tile, 0), high = by.placeOf(tile, 1);
        if constexpr (L::kTeam == 1) {
          start(by, staging, slot, 0, kvHead, low.page, low.inPage);
          start(by, staging, slot, 1, kvHead, high.page, high.inPage);
        } else { // selected here: otherwise the compiler indexes a tile's halves in memory
          const bool isHigh = by.isMine(1);
          start(by, staging, slot, by.member(), kvHead, isHigh ? high.page : low.page,
                isHigh ? high.inPage : low.inPage);
        }
      }
      ptx::cpAsyncCommit();
      Staged next{{tile.token[0], tile.token[1]}, bounds, isHidden, isDealt, {}, slot, step};
      if (isHidden)
        next.token[0].visible = next.token[1].visible = kNobody;
      else if (by.member() == 0)
        by.elements().load(by.slotsOf(tile).of, kvHead, next.elements);
      step = ownFrom(step + 1);
      look(); // page lookups overlap the conversion of the previous bytes
      convert<1>(by, staging, staged);
      staged = next;
    }
  }

  /// Converts the tile that is left from all units so far.
  static __device__ __forceinline__ void finish(const Copying &by, Staged &staged) {
    convert<0>(by, ByteStaging<Config>(by.ring_, by.warp_, by.lane_), staged);
    staged.step = -1;
  }

private:
  static __device__ __forceinline__ void start(const Copying &by, const ByteStaging<Config> &staging,
                                               int slot, int half, int kvHead, int page, int inPage) {
    staging.start(by.args_, slot, half, tokenPlace<Config>(by.args_.kCache, kvHead, page, inPage),
                  tokenPlace<Config>(by.args_.vCache, kvHead, page, inPage));
  }

  /// Fills a tile's stage when the bytes of all but the last `kPending` tiles have arrived.
  template <int kPending>
  static __device__ __forceinline__ void convert(const Copying &by, const ByteStaging<Config> &staging,
                                                 const Staged &staged) {
    const int step = staged.step;
    if (step < 0)
      return;
    ptx::cpAsyncWait<kPending>();
    if (step >= Config::kStages)
      ptx::mbarrierWait(by.ring_.empty(step), (step / Config::kStages - 1) & 1);
    if (!staged.isHidden) {
#pragma unroll
      for (int half = 0; half < 2; ++half)
        if (by.isMine(half))
          staging.convert(staged.slot, half, step);
    }
    if (by.member() == 0) {
      by.elements().store(staged.elements, step);
      by.writeFacts(staged.token, staged.bounds, /*isGathered=*/true, staged.isDealt, step);
    }
    ptx::mbarrierArrive(by.ring_.full(step));
  }
};

} // namespace deft::sm90
