#pragma once

#include "deft/common/row_place.cuh"
#include "deft/ptx/cp_async.cuh"
#include "deft/ptx/forget.cuh"
#include "deft/sm90/run_window.cuh"
#include "deft/sm90/units.cuh"
#include "deft/sm90/write_tile_facts.cuh"
#include "deft/sm90_latent/layout.cuh"
#include "deft/sm90_latent/tile_runs.cuh"

/// What a copying warp does whatever the cache is of: queries, a tile's tokens and its facts.
namespace deft::sm90_latent {

/// Whether a mask reads depths.
template <class Variant, bool kHasMask = Variant::kHasMask> constexpr bool kMaskReadsDepth = false;
template <class Variant> constexpr bool kMaskReadsDepth<Variant, true> = Variant::kReadsDepth;

/// Each warp copies some of the unit's rows of queries.
template <class Config, class Variant> class CopyingWarp {
public:
  static __device__ __forceinline__ abi::Item itemOf(const abi::AttendArgs &args, int unit) {
    const abi::Item *item = args.items + args.itemBegin + sm90::Units<Config>(args).item(unit);
    const int4 low = reinterpret_cast<const int4 *>(item)[0], high = reinterpret_cast<const int4 *>(item)[1];
    return {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
  }

protected:
  using Params = typename Variant::Params;
  using L = Layout<Config>;
  using Token = sm90::Token;
  static constexpr int kWarps = kCopyingWarps<Config>;
  static constexpr int kQueryRows = kRows / kWarps; ///< of a warp
  static constexpr bool kNeedsDepth = kMaskReadsDepth<Variant> || HasValueFactor<Variant> ||
                                      (Variant::kHasScore && !FormOf<Variant>::kIsKnown);
  static constexpr bool kHasPages = Config::kPageSize > 1;

  __device__ __forceinline__ CopyingWarp(const abi::AttendArgs &args, const Params &params,
                                         const Ring<Config> &ring)
      : args_(args), params_(params), ring_(ring), warp_(threadIdx.x / 32), lane_(threadIdx.x % 32) {}

  /// The lane's, of four rows of a block that are copied at a time. Made anew, since registers are few.
  __device__ __forceinline__ int rowOfFour() const { return lane_ / 8; }
  __device__ __forceinline__ int column() const { return lane_ % 8; }
  __device__ __forceinline__ unsigned rope(int step) const { return ring_.tile(step) + L::kRopeOffset; }

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

  /// The warp's rows of the unit's queries, and what the computing warps want to know of the unit. The last
  /// row is repeated up to 16: what a warp computes may depend on all its rows.
  __device__ __forceinline__ void copyQueries(const abi::Item &item, int heads, int number,
                                              int endStep) const {
    const int rows = item.queryCount * Config::kRatio, own = warp_ * kQueryRows + lane_ % kQueryRows;
    const int at = min(own, rows - 1);
    const bool isCopied = own / 16 * 16 < rows;
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
    if (lane_ < kQueryRows) {
      head.callerIndex[own] = caller;
      if constexpr (WarpRows<Config, Variant>::kNeedsQuery)
        head.queryPos[own] = position;
    }
    WarpRows<Config, Variant>::awaitQueries();
    if (isCopied) {
      const char *from = columnOf(args_.q);
#pragma unroll 1
      for (int row = 0; row < kQueryRows; row += 4)
        copyRow<L::kBlocks>(
            ring_.queries(), warp_ * kQueryRows + row,
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
    }
    finish(item, index, tile);
  }
  __device__ __forceinline__ void find(const abi::Item &item, TileRuns &runs, int index, Tile &tile) const {
    runs.find(index * Config::kTileKv, item.tokens - 1, tile.token);
    finish(item, index, tile);
  }
  /// Of tokens that have been found, what nobody asks for.
  __device__ __forceinline__ void finish(const abi::Item &item, int index, Tile &tile) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (index * Config::kTileKv + half * 32 + lane_ >= item.tokens) // the last one again: nobody sees it
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

  static __device__ __forceinline__ Source placeOf(const Tile &tile, int half) {
    Source source{tile.token[half].place, 0, 0};
    if constexpr (kHasPages) {
      source.page = tile.page[half];
      source.inPage = static_cast<int>(static_cast<unsigned>(tile.token[half].place) % Config::kPageSize);
    }
    return source;
  }

  const abi::AttendArgs &args_;
  const Params &params_;
  const Ring<Config> &ring_;
  const int warp_, lane_;
};

} // namespace deft::sm90_latent
