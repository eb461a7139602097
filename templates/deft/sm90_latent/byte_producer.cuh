#pragma once

#include "deft/ptx/prefetch.cuh"
#include "deft/ptx/prefetch_bytes.cuh"
#include "deft/ptx/tensor_copy.cuh"
#include "deft/sm90_latent/byte_rows.cuh"
#include "deft/sm90_latent/copying_warp.cuh"

/// The warps that copy a cache of bytes. Each has some tokens of each tile. Unless tiles keep the bytes, it
/// waits for its own copies only, and converts them in place.
namespace deft::sm90_latent {

template <class Config, class Variant> class ByteProducer : public CopyingWarp<Config, Variant> {
  using Copying = CopyingWarp<Config, Variant>;
  using Rows = ByteRows<Config>;
  using Copying::args_, Copying::ring_, Copying::lane_, Copying::warp_;
  using typename Copying::L;
  using typename Copying::Params;
  using typename Copying::Tile;
  static constexpr bool kRopeIsCopied = kHasScales<Config>; ///< it is of q's type

public:
  static __device__ __forceinline__ void prefetchMaps(const abi::AttendArgs &) {}

  __device__ __forceinline__ ByteProducer(const abi::AttendArgs &args, const Params &params,
                                          const Ring<Config> &ring)
      : Copying(args, params, ring) {}

  /// `first` is the block's first item.
  __device__ __forceinline__ void run(const abi::Item &first) const {
    __shared__ Unit units[Copying::kWarps];
    Unit &unit = units[warp_];
    begin(unit, first, 0, 0);
    const sm90::Units<Config> all(args_);
    for (;;) {
      const int number = blockIdx.x + unit.number * ptx::blocksReadHere();
      if (number >= all.count())
        break;
      if (unit.number > 0)
        begin(unit, Copying::itemOf(args_, number), unit.number, unit.step);
      if (tilesOf<Config>(unit.item) == 0)
        break; // items of none are the last ones
      if constexpr (kKeepsBytes<Config>)
        streamUnit(unit, all.kvHead(number));
      else
        copyUnit(unit, all.kvHead(number));
      begin(unit, unit.item, unit.number + 1, unit.step + tilesOf<Config>(unit.item));
    }
    Copying::tellEnd(unit.number, unit.step);
  }

private:
  /// A warp's unit. There are no registers for it.
  struct alignas(16) Unit {
    abi::Item item;
    int number, step; ///< how many the block had before, and the first tile's
  };
  __device__ __forceinline__ void begin(Unit &unit, const abi::Item &item, int number, int step) const {
    __syncwarp();
    if (lane_ == 0)
      unit = {item, number, step};
    __syncwarp();
  }

  /// Where a tile's tokens lie. A tile that nobody sees is not copied.
  struct Source {
    BytePlace place;
    bool isHidden;
  };

  /// Copies the unit's tiles and queries. While a tile lands, the next one is found and prefetched to L2. It
  /// lands while that tile is converted, if the first part of its slot is free by then. The first tile comes
  /// before the queries: these wait until the queries of the unit before are no longer needed.
  __device__ __forceinline__ void copyUnit(const Unit &unit, int heads) const {
    typename Copying::Tokens runs(args_, unit.item, lane_);
    __shared__ TileBounds bounds[Copying::kWarps];
    Copying::keepBounds(unit.item, heads, bounds[warp_]);
    const Rows rows(args_, ring_, warp_, lane_);
    Source source{}, next{};
    const int tiles = tilesOf<Config>(unit.item);
#pragma unroll 1
    for (int index = -1; index < tiles; ++index) {
      const int step = unit.step + index;
      bool isDue = index + 1 < tiles; // the next tile has to be started
      if (isDue)
        next = find(unit, runs, index + 1, bounds[warp_]);
      if (index >= 0) {
        await(step, kOther);
        startRope(rows, source, step);
        if (isDue && isFree(step + 1)) {
          start(rows, next, step + 1);
          isDue = false;
        }
        convert(rows, source, step);
        __syncwarp();
        if (lane_ == 0) {
          ptx::mbarrierArrive(ring_.full(step, kOther)); // for the tile's facts, too
          ptx::mbarrierArrive(ring_.full(step, kOwn));
        }
      }
      if (isDue) {
        await(step + 1, kOwn);
        start(rows, next, step + 1);
      }
      source = next;
      if (index < 0)
        Copying::copyQueries(unit.item, heads, unit.number, unit.step + tiles);
    }
  }

  /// The same for tiles that keep the bytes. They wait for their slots alone.
  __device__ __forceinline__ void streamUnit(const Unit &unit, int heads) const {
    typename Copying::Tokens runs(args_, unit.item, lane_);
    __shared__ TileBounds bounds[Copying::kWarps];
    Copying::keepBounds(unit.item, heads, bounds[warp_]);
    const Rows rows(args_, ring_, warp_, lane_);
    const int tiles = tilesOf<Config>(unit.item);
    Source source = find(unit, runs, 0, bounds[warp_]);
#pragma unroll 1
    for (int index = 0; index < tiles; ++index) {
      const int step = unit.step + index;
      await(step, kOther);
      await(step, kOwn);
      if (!source.isHidden) {
        rows.start(source.place, step);
        copyRope(rows, source, step);
      }
      ptx::mbarrierArriveAfterCopies(ring_.full(step, kOwn));
      __syncwarp();
      if (lane_ == 0)
        ptx::mbarrierArrive(ring_.full(step, kOther)); // for the tile's facts
      if (index == 0)
        Copying::copyQueries(unit.item, heads, unit.number, unit.step + tiles);
      if (index + 1 < tiles)
        source = find(unit, runs, index + 1, bounds[warp_]);
    }
  }

  /// Finds a tile of the unit and writes its facts. Prefetches it to L2 if copies convert.
  __device__ __forceinline__ Source find(const Unit &unit, typename Copying::Tokens &runs, int index,
                                         const TileBounds &bounds) const {
    Tile tile;
    Copying::find(unit.item, runs, index, tile);
    Copying::lookUpPages(tile);
    const TokenBounds tokens = Copying::boundsOf(tile);
    Source source;
    source.isHidden = Copying::isHidden(tile, tokens, bounds);
    if (source.isHidden)
      Copying::hide(tile);
    // Warps take turns, so that no warp is always the last. The slot of the tile two before was free, so its
    // facts are no longer read.
    if (warp_ == (unit.step + index) % Copying::kWarps)
      writeTileFacts<Config, Variant>(ring_.slot(unit.step + index), tile.token, tokens,
                                      kCopiesConvert<Config> && kRopeIsCopied, false, lane_);
    const auto place = warp_ * Rows::kTokens < 32 ? Copying::placeOf(tile, 0) : Copying::placeOf(tile, 1);
    source.place.row = tokenPlace<Config>(args_.kCache, 0, place.page, place.inPage);
    source.place.rope =
        kRopeIsCopied ? source.place.row : tokenPlace<Config>(args_.vCache, 0, place.page, place.inPage);
    if (kCopiesConvert<Config> && !source.isHidden) // its slot has to wait for the conversion of another tile
      prefetch(source.place);
    return source;
  }

  /// Prefetches the warp's tokens to L2. Adjacent rows take one request.
  __device__ __forceinline__ void prefetch(const BytePlace &place) const {
    constexpr int kRowBytes = kRopeIsCopied ? ByteRow<Config>::kBytes : Config::kValueDim;
    const unsigned stride = args_.kCache.tokenStride;
    const int firstLane = warp_ * Rows::kTokens % 32, token = lane_ - firstLane;
    const bool isOwn = static_cast<unsigned>(token) < Rows::kTokens;
    const unsigned first = __shfl_sync(~0u, place.row, firstLane);
    const unsigned strideBytes = stride * (kRowUnit<Config> * static_cast<int>(sizeof(Stored<Config>)));
    if (__all_sync(~0u, !isOwn || place.row == first + token * stride) &&
        strideBytes <= 2 * kRowBytes) { // small gaps at most
      if (ptx::electOne())
        ptx::prefetchBytes(Rows::rowAt(args_.k, first), (Rows::kTokens - 1) * strideBytes + kRowBytes);
    } else {
      constexpr int kLine = 128,
                    kLines = (kRowBytes + kLine - 1) / kLine + 1; // rows begin anywhere in a line
      const char *const row =
          Rows::rowAt(args_.k, __shfl_sync(~0u, place.row, firstLane + lane_ % Rows::kTokens));
#pragma unroll
      for (int line = 0; line < kLines; line += 32 / Rows::kTokens) // a token has so many lanes
        ptx::prefetch(row + min((line + lane_ / Rows::kTokens) * kLine, kRowBytes - 1));
    }
    if (!kRopeIsCopied && isOwn)
      ptx::prefetch(Rows::rowAt(args_.v, place.rope));
  }

  /// Waits until a part of the tile's slot is free.
  __device__ __forceinline__ void await(int step, Part part) const {
    if (step >= kSlots<Config>)
      ptx::mbarrierWait(ring_.empty(step, part), Ring<Config>::parity(step) ^ 1);
  }
  /// Whether the first part is free, the same for the whole warp.
  __device__ __forceinline__ bool isFree(int step) const {
    return step < kSlots<Config> ||
           __all_sync(~0u, ptx::mbarrierIsComplete(ring_.empty(step, kOwn), Ring<Config>::parity(step) ^ 1));
  }

  __device__ __forceinline__ void start(const Rows &rows, const Source &source, int step) const {
    if (!source.isHidden)
      rows.start(source.place, step);
    ptx::mbarrierArriveAfterCopies(ring_.landed(step, warp_));
  }

  /// Copies the tile's last block, which is free.
  __device__ __forceinline__ void startRope(const Rows &rows, const Source &source, int step) const {
    if (!source.isHidden)
      copyRope(rows, source, step);
    ptx::mbarrierArriveAfterCopies(ring_.full(step, kOther));
  }
  __device__ __forceinline__ void copyRope(const Rows &rows, const Source &source, int step) const {
    if constexpr (kRopeIsCopied) {
      const char *const from = Copying::columnOf(args_.v);
#pragma unroll
      for (int token = 0; token < Rows::kTokens; token += 4) {
        const unsigned row =
            __shfl_sync(~0u, source.place.row, rows.firstLane() + token + Copying::rowOfFour());
        Copying::template copyRow<1>(Copying::rope(step), warp_ * Rows::kTokens + token,
                                     atPlace<Config, Stored<Config>>(from, row));
      }
    } else if constexpr (kKeepsBytes<Config>) {
      rows.startRopeBytes(source.place, step);
    } else {
      rows.startRope(source.place, step);
      ptx::cpAsyncCommit();
    }
  }

  /// Converts a tile that was started, once it has landed. Its whole slot is free.
  __device__ __forceinline__ void convert(const Rows &rows, const Source &source, int step) const {
    ptx::mbarrierWait(ring_.landed(step, warp_), Ring<Config>::parity(step));
    if (source.isHidden)
      return;
    rows.convert(source.place, step);
    if constexpr (!kRopeIsCopied) {
      ptx::cpAsyncWait<0>(); // the next tile's bytes are in no group yet
      __syncwarp();
      rows.convertRope(step);
    }
    ptx::fenceAsyncProxy(); // products read what the lane has written
  }
};

} // namespace deft::sm90_latent
