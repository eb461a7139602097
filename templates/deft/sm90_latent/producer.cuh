#pragma once

#include "deft/common/row_place.cuh"
#include "deft/ptx/cp_async.cuh"
#include "deft/ptx/forget.cuh"
#include "deft/ptx/tensor_copy.cuh"
#include "deft/sm90/run_window.cuh"
#include "deft/sm90/units.cuh"
#include "deft/sm90/write_tile_facts.cuh"
#include "deft/sm90_latent/byte_rows.cuh"

/// The warpgroup that copies. Warp w fills part w % 2 of slot w / 2, and each warp copies 16 of the unit's
/// rows of queries. Tokens that lie one after the other come by bulk copies, the others one by one. Of a
/// cache of bytes warp w fills part w % 2 of each slot, for half of the tokens: conversion takes longer than
/// the slot is free for.
namespace deft::sm90_latent {

/// Whether a mask reads depths.
template <class Variant, bool kHasMask = Variant::kHasMask> constexpr bool kMaskReadsDepth = false;
template <class Variant> constexpr bool kMaskReadsDepth<Variant, true> = Variant::kReadsDepth;

template <class Config, class Variant> class Producer {
  using Params = typename Variant::Params;
  using L = Layout<Config>;
  using Token = sm90::Token;
  static constexpr int kWarps = 4;
  static constexpr int kGroup = 16; ///< tokens of a bulk copy
  static constexpr bool kNeedsDepth = kMaskReadsDepth<Variant> || HasValueFactor<Variant> ||
                                      (Variant::kHasScore && !FormOf<Variant>::kIsKnown);
  static constexpr bool kHasPages = Config::kPageSize > 1;
  static constexpr bool kConverts = kIsOfBytes<Config>; ///< the cache is
  /// Whether a page (or the contiguous cache) has room for a group, and for a tile, to copy them as they are.
  static constexpr bool kHasBulk = !kConverts && (!kHasPages || Config::kPageSize % kGroup == 0);
  static constexpr bool kHasTile = !kConverts && (!kHasPages || Config::kPageSize % Config::kTileKv == 0);

public:
  /// For warp 0 and the two after it.
  static __device__ __forceinline__ void prefetchMaps(const abi::AttendArgs &args) {
    if constexpr (!kConverts) {
      if (!args.hasMaps || !ptx::electOne())
        return;
#pragma unroll
      for (int box = 0; box < 3; box += 2) // of 16 tokens, and of a tile
        if (threadIdx.x / 32 == box && (box == 0 || kHasTile)) {
          ptx::prefetch(args.kBoxes[box]);
          ptx::prefetch(args.vBoxes[box]);
        }
    }
  }

  static __device__ __forceinline__ abi::Item itemOf(const abi::AttendArgs &args, int unit) {
    const abi::Item *item = args.items + args.itemBegin + sm90::Units<Config>(args).item(unit);
    const int4 low = reinterpret_cast<const int4 *>(item)[0], high = reinterpret_cast<const int4 *>(item)[1];
    return {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
  }

  __device__ __forceinline__ Producer(const abi::AttendArgs &args, const Params &params,
                                      const Ring<Config> &ring)
      : args_(args), params_(params), ring_(ring), warp_(threadIdx.x / 32), lane_(threadIdx.x % 32) {}

  /// `first` is the block's first item.
  __device__ __forceinline__ void run(const abi::Item &first) const {
    const sm90::Units<Config> units(args_);
    int step = 0, number = 0;
    abi::Item item = first;
    for (int unit = blockIdx.x; unit < units.count(); unit = units.next(unit), ++number) {
      if (number > 0)
        item = itemOf(args_, unit);
      const int tiles = tilesOf<Config>(item), heads = units.kvHead(unit);
      if (tiles == 0)
        break; // items of none are the last ones
      copyQueries(item, heads, number, step + tiles);
      if constexpr (kConverts)
        convertTiles(item, heads, step, step + tiles);
      else
        copyTiles(item, heads, step, step + tiles);
      step += tiles;
    }
    tellEnd(number, step);
  }

private:
  /// The lane's, of four rows of a block that are copied at a time. Made anew, since registers are few.
  __device__ __forceinline__ int rowOfFour() const { return lane_ / 8; }
  __device__ __forceinline__ int column() const { return lane_ % 8; }
  __device__ __forceinline__ int slot() const { return warp_ / 2; }
  __device__ __forceinline__ Part part() const { return static_cast<Part>(warp_ % 2); }
  /// The first of V's blocks that the warp copies: of warpgroup 0's half, or of warpgroup 1's.
  __device__ __forceinline__ int firstBlock() const { return (slot() + warp_) % 2 * L::kHalfBlocks; }

  /// A lane's two tokens of a tile, 32 apart.
  struct Tile {
    Token token[2]; ///< where pages are single tokens, their place is the page
    int page[2];    ///< where they have several
  };

  /// Where a lane's token of a half of a tile lies, and what the copy engine brings of that half.
  struct Source {
    int page, inPage;
    unsigned bulk; ///< 1: the first 16 tokens, 2: the others; 4: all 32 lie one after the other

    /// That of a lane, for the whole warp.
    __device__ __forceinline__ Source at(int lane) const {
      return {__shfl_sync(~0u, page, lane), __shfl_sync(~0u, inPage, lane), bulk};
    }
  };

  /// The warp's 16 rows of the unit's queries, and what the computing warps want to know of the unit. The
  /// last row is repeated up to 16: what a warp computes may depend on all its rows.
  __device__ __forceinline__ void copyQueries(const abi::Item &item, int heads, int number,
                                              int endStep) const {
    const int rows = item.queryCount * Config::kRatio, own = warp_ * 16 + lane_ % 16;
    const int at = min(own, rows - 1);
    const bool isCopied = warp_ * 16 < rows;
    const int caller = isCopied ? args_.callerIndex[item.queryBegin + at / Config::kRatio] : 0;
    int position = 0;
    if constexpr (WarpRows<Config, Variant>::kNeedsQuery)
      position = isCopied ? args_.queryPos[item.queryBegin + at / Config::kRatio] : 0;
    const unsigned place = queryPlace<Config>(args_, caller, heads * Config::kRatio + at % Config::kRatio);
    awaitHead(number);
    UnitHead &head = ring_.head(number);
    if (threadIdx.x == 0) {
      head.item = item;
      head.endStep = endStep;
      head.heads = heads;
    }
    if (lane_ < 16) {
      head.callerIndex[own] = caller;
      if constexpr (WarpRows<Config, Variant>::kNeedsQuery)
        head.queryPos[own] = position;
    }
    WarpRows<Config, Variant>::awaitQueries();
    if (isCopied) {
      const char *from = columnOf(args_.q);
#pragma unroll 1
      for (int row = 0; row < 16; row += 4)
        copyRow<L::kBlocks>(
            ring_.queries(), warp_ * 16 + row,
            atPlace<Config, typename Config::Query>(from, __shfl_sync(~0u, place, row + rowOfFour())));
    }
    __syncwarp();
    if (lane_ == 0)
      ptx::mbarrierArrive(ring_.queriesFull());
    ptx::mbarrierArriveAfterCopies(ring_.queriesFull());
  }

  /// A unit of no tiles, behind which there is none.
  __device__ __forceinline__ void tellEnd(int number, int step) const {
    awaitHead(number);
    if (threadIdx.x == 0)
      ring_.head(number).endStep = step;
    __syncwarp();
    if (lane_ == 0)
      ptx::mbarrierArrive(ring_.queriesFull());
    ptx::mbarrierArriveAfterCopies(ring_.queriesFull());
  }
  /// Until the computing warps have done with the queries of the unit before.
  __device__ __forceinline__ void awaitHead(int number) const {
    if (number > 0)
      ptx::mbarrierWait(ring_.queriesEmpty(), (number - 1) & 1);
  }

  /// The lane's 16-byte column of a tensor's first block, kept in registers.
  __device__ __forceinline__ const char *columnOf(const void *tensor) const {
    const char *first = static_cast<const char *>(tensor) + column() * 16;
    ptx::forget(first);
    return first;
  }

  /// The lane's part of four rows from `first`, a multiple of 4, of kCount blocks that begin at `to`.
  template <int kCount>
  __device__ __forceinline__ void copyRow(unsigned to, int first, const char *source) const {
    const unsigned at = to + first * 128 + rowOfFour() * 128 + ((column() ^ rowOfFour()) ^ (first & 4)) * 16;
#pragma unroll
    for (int block = 0; block < kCount; ++block)
      ptx::cpAsync16(at + block * kBlockBytes, source + block * 128);
  }

  /// The warp's part of the tiles in the steps [begin, end) that go to its slot.
  __device__ __forceinline__ void copyTiles(const abi::Item &item, int heads, int begin, int end) const {
    sm90::RunWindow runs(args_.runs + item.runBegin, item.runCount, lane_);
    __shared__ TileBounds bounds[kWarps]; // of the unit's rows: there are no registers for them
    keepBounds(item, heads, bounds[warp_]);
    for (int step = begin + (begin + slot()) % kSlots; step < end; step += kSlots) {
      Tile tile; // found while the slot is still in use
      find(item, runs, step - begin, tile);
      lookUpPages(tile);
      const bool isHidden = !mayBeSeen(boundsOf(tile), bounds[warp_]);
      if (isHidden)
        tile.token[0].visible = tile.token[1].visible = sm90::kNobody;
      const unsigned before = Ring<Config>::parity(step) ^ 1;
      if (step >= kSlots)
        ptx::mbarrierWait(ring_.empty(step, part()), before);
      const Source low = sourceOf(tile, 0), high = sourceOf(tile, 1); // no sooner: registers are few
      if (!isHidden)
        copy(low, high, step);
      if (part() == kOther)
        writeFacts(tile, (low.bulk & high.bulk & 3) != 3, step, before);
      ptx::mbarrierArriveAfterCopies(ring_.full(step, part()));
    }
  }

  /// Tiles of a cache of bytes: of every one, each warp half of the tokens of one part.
  __device__ __forceinline__ void convertTiles(const abi::Item &item, int heads, int begin, int end) const {
    sm90::RunWindow runs(args_.runs + item.runBegin, item.runCount, lane_);
    __shared__ TileBounds bounds[kWarps];
    keepBounds(item, heads, bounds[warp_]);
    const int half = warp_ / 2;
    for (int step = begin; step < end; ++step) {
      Tile tile;
      find(item, runs, step - begin, tile);
      lookUpPages(tile);
      const bool isHidden = !mayBeSeen(boundsOf(tile), bounds[warp_]);
      if (isHidden)
        tile.token[0].visible = tile.token[1].visible = sm90::kNobody;
      const Source source = half == 0 ? placeOf(tile, 0) : placeOf(tile, 1);
      const int firstBlock = (step + warp_) % 2 * L::kHalfBlocks;
      ByteRows<Config> rows(args_, tokenPlace<Config>(args_.kCache, 0, source.page, source.inPage),
                            tokenPlace<Config>(args_.vCache, 0, source.page, source.inPage), firstBlock * 64,
                            lane_);
      if (!isHidden) { // while the slot is still in use
        rows.prefetch();
        if (part() == kOther)
          rows.prefetchRope();
        if (warp_ != kOther)
          rows.load();
      }
      const unsigned before = Ring<Config>::parity(step) ^ 1;
      if (step >= kSlots)
        ptx::mbarrierWait(ring_.empty(step, part()), before);
      if (warp_ == kOther) { // in turn: there are no registers for both
        writeFacts(tile, false, step, before);
        if (!isHidden)
          rows.load();
      }
      if (!isHidden) {
        char *const to = ring_.shared + (ring_.tile(step) - ring_.base) + half * 32 * 128;
        rows.convert(to + firstBlock * kBlockBytes);
        if (part() == kOther)
          rows.convertRope(to + L::kRopeOffset);
      }
      ptx::fenceAsyncProxy(); // products read what the lane has written
      ptx::mbarrierArrive(ring_.full(step, part()));
    }
  }

  /// What a mask asks for of the unit's rows.
  __device__ __forceinline__ void keepBounds(const abi::Item &item, int heads, TileBounds &bounds) const {
    if constexpr (Variant::kHasMask) {
      TileBounds rows = boundsOf(item, heads);
      joinLanes(rows);
      __syncwarp(); // those of the unit before have been read
      if (lane_ == 0)
        bounds = rows;
      __syncwarp();
    }
  }

  /// Of both parts. `before`: the parity of the step that the slot had before.
  __device__ __forceinline__ void writeFacts(const Tile &tile, bool isGathered, int step,
                                             unsigned before) const {
    if (step >= kSlots)
      ptx::mbarrierWait(ring_.empty(step, kOwn), before);
    sm90::writeTileFacts<Config, Variant>(ring_.slot(step), tile.token, boundsOf(tile), isGathered, false,
                                          lane_);
    __syncwarp();
    if (lane_ == 0)
      ptx::mbarrierArrive(ring_.full(step, kOther));
  }

  /// Of the unit's rows, where a mask asks for them; each lane has its own queries only.
  __device__ __forceinline__ TileBounds boundsOf(const abi::Item &item, int heads) const {
    TileBounds bounds{};
    if constexpr (Variant::kHasMask) {
      bounds.headLo = heads * Config::kRatio;
      bounds.headHi = bounds.headLo + Config::kRatio - 1;
      const int first = item.queryBegin + min(lane_, item.queryCount - 1);
      bounds.qLo = bounds.qHi = args_.queryPos[first]; // as they come: nothing waits for them here
      if constexpr (Variant::kReadsQuery)
        bounds.queryLo = bounds.queryHi = args_.callerIndex[first];
#pragma unroll 1
      for (int i = lane_ + 32; i < item.queryCount; i += 32) {
        const int position = args_.queryPos[item.queryBegin + i];
        bounds.qLo = min(bounds.qLo, position);
        bounds.qHi = max(bounds.qHi, position);
        if constexpr (Variant::kReadsQuery) {
          const int query = args_.callerIndex[item.queryBegin + i];
          bounds.queryLo = min(bounds.queryLo, query);
          bounds.queryHi = max(bounds.queryHi, query);
        }
      }
    }
    return bounds;
  }

  static __device__ __forceinline__ void joinLanes(TileBounds &bounds) {
    bounds.qLo = __reduce_min_sync(~0u, bounds.qLo);
    bounds.qHi = __reduce_max_sync(~0u, bounds.qHi);
    if constexpr (Variant::kReadsQuery) {
      bounds.queryLo = __reduce_min_sync(~0u, bounds.queryLo);
      bounds.queryHi = __reduce_max_sync(~0u, bounds.queryHi);
    }
  }

  /// Of the tile's tokens, where a mask asks for them.
  static __device__ __forceinline__ TokenBounds boundsOf(const Tile &tile) {
    TokenBounds bounds{};
    if constexpr (Variant::kHasMask) {
      const Token &low = tile.token[0], &high = tile.token[1];
      bounds.kvLo = __reduce_min_sync(~0u, min(low.position, high.position));
      bounds.kvHi = __reduce_max_sync(~0u, max(low.position, high.position));
      if constexpr (Variant::kReadsDepth) {
        bounds.depthLo = __reduce_min_sync(~0u, min(low.depth, high.depth));
        bounds.depthHi = __reduce_max_sync(~0u, max(low.depth, high.depth));
      }
    }
    return bounds;
  }

  /// Whether the mask leaves something of the tile; else it need not be copied.
  __device__ __forceinline__ bool mayBeSeen(const TokenBounds &tokens, TileBounds bounds) const {
    if constexpr (Variant::kHasMask) {
      bounds.kvLo = tokens.kvLo;
      bounds.kvHi = tokens.kvHi;
      bounds.depthLo = tokens.depthLo;
      bounds.depthHi = tokens.depthHi;
      return Variant::tile(params_, bounds).any;
    }
    return true;
  }

  __device__ __forceinline__ void find(const abi::Item &item, sm90::RunWindow &runs, int index,
                                       Tile &tile) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int first = index * Config::kTileKv + half * 32;
      tile.token[half] = runs.find(first, item.tokens - 1);
      if (first + lane_ >= item.tokens) // the last token is copied again, and nobody sees it
        tile.token[half].visible = sm90::kNobody;
      if constexpr (!WarpRows<Config, Variant>::kNeedsToken) // registers are few
        tile.token[half].position = 0;
      if constexpr (!kNeedsDepth)
        tile.token[half].depth = 0;
    }
  }

  /// Of both halves together: looking up the second would wait for the page of the first.
  __device__ __forceinline__ void lookUpPages(Tile &tile) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      int &place = tile.token[half].place;
      if constexpr (Config::kPageSize == 1)
        place = args_.pageTable[place];
      if constexpr (kHasPages)
        tile.page[half] = args_.pageTable[static_cast<unsigned>(place) / Config::kPageSize];
    }
  }

  static __device__ __forceinline__ bool isNext(int inPage, int page, int inPageBefore, int pageBefore) {
    if constexpr (!kHasPages)
      return page == pageBefore + 1;
    return page == pageBefore && inPage == inPageBefore + 1;
  }

  static __device__ __forceinline__ Source placeOf(const Tile &tile, int half) {
    Source source{tile.token[half].place, 0, 0};
    if constexpr (kHasPages) {
      source.page = tile.page[half];
      source.inPage = static_cast<int>(static_cast<unsigned>(tile.token[half].place) % Config::kPageSize);
    }
    return source;
  }

  __device__ __forceinline__ Source sourceOf(const Tile &tile, int half) const {
    Source source = placeOf(tile, half);
    if constexpr (kHasBulk) {
      // Lanes whose token lies behind that of the lane before. That it comes next on the path does not say
      // so: a request may have one page at two places that follow each other.
      const int inPage = kHasPages ? source.inPage : source.page;
      const unsigned follows = __ballot_sync(~0u, isNext(inPage, source.page, __shfl_up_sync(~0u, inPage, 1),
                                                         __shfl_up_sync(~0u, source.page, 1)));
      if (args_.hasMaps)
        source.bulk = ((follows & 0xfffe) == 0xfffe ? 1 : 0) |
                      ((follows & 0xfffe0000) == 0xfffe0000 ? 2 : 0) |
                      (kHasTile && (follows | 1) == ~0u ? 4 : 0);
    }
    return source;
  }

  /// Whether the tile's tokens lie one after the other.
  static __device__ __forceinline__ bool isWhole(const Source &low, const Source &high) {
    return (low.bulk & high.bulk & 4) != 0 && high.page == low.page + (kHasPages ? 0 : 32) &&
           high.inPage == low.inPage + (kHasPages ? 32 : 0);
  }

  __device__ __forceinline__ void copy(const Source &low, const Source &high, int step) const {
    if (kHasTile && isWhole(low, high)) {
      copyTile(low.at(0), step);
    } else {
      copyHalf(low, 0, step);
      copyHalf(high, 1, step);
    }
  }

  __device__ __forceinline__ unsigned blocks(int step) const {
    return ring_.tile(step) + firstBlock() * kBlockBytes;
  }
  __device__ __forceinline__ unsigned rope(int step) const { return ring_.tile(step) + L::kRopeOffset; }

  __device__ __forceinline__ void copyTile(const Source &source, int step) const {
    if (!ptx::electOne())
      return;
    const unsigned full = ring_.full(step, part());
    const bool hasRope = part() == kOther;
    ptx::mbarrierExpectBytes(full, (L::kHalfBlocks + (hasRope ? 1 : 0)) * kBlockBytes);
    const auto copyBlocks = [&](unsigned to, const abi::TensorMap &map, int block) {
      if constexpr (kHasPages)
        ptx::tensorCopy(to, map, full, 0, source.inPage, block, 0, source.page);
      else
        ptx::tensorCopy(to, map, full, 0, source.page, block, 0);
    };
    copyBlocks(blocks(step), args_.kBoxes[2], firstBlock());
    if (hasRope)
      copyBlocks(rope(step), args_.vBoxes[2], 0);
  }

  __device__ __forceinline__ void copyHalf(const Source &source, int half, int step) const {
    if constexpr (kHasBulk) {
#pragma unroll
      for (int group = 0; group < 2; ++group)
        if (source.bulk >> group & 1)
          copyBoxes(half * 32 + group * kGroup, source.at(group * kGroup), step);
    }
    if ((source.bulk & 3) != 3)
      copyTokens(source, half, step);
  }

  /// 16 tokens by the copy engine. All lanes come, with the same.
  __device__ __forceinline__ void copyBoxes(int firstRow, const Source &source, int step) const {
    if (!ptx::electOne())
      return;
    const unsigned full = ring_.full(step, part());
    const bool hasRope = part() == kOther;
    ptx::mbarrierExpectBytes(full, (L::kHalfBlocks + (hasRope ? 1 : 0)) * kGroup * 128);
    const auto copyBox = [&](unsigned to, const abi::TensorMap &map, int column) {
      if constexpr (kHasPages)
        ptx::tensorCopy(to + firstRow * 128, map, full, column, 0, source.inPage, source.page);
      else
        ptx::tensorCopy(to + firstRow * 128, map, full, column, 0, source.page);
    };
#pragma unroll
    for (int block = 0; block < L::kHalfBlocks; ++block)
      copyBox(blocks(step) + block * kBlockBytes, args_.kBoxes[0], (firstBlock() + block) * 64);
    if (hasRope)
      copyBox(rope(step), args_.vBoxes[0], 0);
  }

  /// The half's groups that the copy engine does not bring. Each lane passes the place of its token on to the
  /// lanes that copy it.
  __device__ __forceinline__ void copyTokens(const Source &source, int half, int step) const {
    const unsigned own = tokenPlace<Config>(args_.kCache, 0, source.page, source.inPage);
    const char *from = columnOf(args_.k) + firstBlock() * 128;
    forEachFour(source, [&](int token) {
      copyRow<L::kHalfBlocks>(
          blocks(step), half * 32 + token,
          atPlace<Config, typename Config::Key>(from, __shfl_sync(~0u, own, token + rowOfFour())));
    });
    if (part() == kOther) {
      const unsigned ownRope = tokenPlace<Config>(args_.vCache, 0, source.page, source.inPage);
      const char *ropeColumn = columnOf(args_.v);
      forEachFour(source, [&](int token) {
        copyRow<1>(rope(step), half * 32 + token,
                   atPlace<Config, typename Config::Key>(ropeColumn,
                                                         __shfl_sync(~0u, ownRope, token + rowOfFour())));
      });
    }
  }

  /// Of the half's tokens that come one by one, the first of each four.
  template <class Copy>
  static __device__ __forceinline__ void forEachFour(const Source &source, Copy &&copy) {
#pragma unroll 1
    for (int group = 0; group < 2; ++group) {
      if (source.bulk >> group & 1)
        continue;
#pragma unroll 1
      for (int token = 0; token < kGroup; token += 4)
        copy(group * kGroup + token);
    }
  }

  const abi::AttendArgs &args_;
  const Params &params_;
  const Ring<Config> &ring_;
  const int warp_, lane_;
};

} // namespace deft::sm90_latent
