#pragma once

#include "deft/common/row_place.cuh"
#include "deft/ptx/cp_async.cuh"
#include "deft/ptx/forget.cuh"
#include "deft/sm90/units.cuh"
#include "deft/sm90/write_tile_facts.cuh"
#include "deft/sm90_latent/layout.cuh"
#include "deft/sm90_latent/unit_tokens.cuh"

/// The work of a copying warp for every type of cache: queries, and the tokens and facts of a tile.
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
  using Tokens = UnitTokens<Config, Variant>;
  static constexpr int kWarps = kCopyingWarps<Config>;
  /// A warp's rows. It copies four at a time. If a unit has few rows, the last warps have none.
  static constexpr int kQueryRows = L::kRows / kWarps < 4 ? 4 : L::kRows / kWarps;
  static constexpr bool kNeedsDepth = kMaskReadsDepth<Variant> || HasValueFactor<Variant> ||
                                      (Variant::kHasScore && !FormOf<Variant>::kIsKnown);
  static constexpr bool kHasPages = Config::kPageSize > 1;

  __device__ __forceinline__ CopyingWarp(const abi::AttendArgs &args, const Params &params,
                                         const Ring<Config> &ring)
      : args_(args), params_(params), ring_(ring), warp_(threadIdx.x / 32), lane_(threadIdx.x % 32) {}

  /// The lane's row among four rows that are copied together. Recomputed each time, to save registers.
  __device__ __forceinline__ int rowOfFour() const { return lane_ / 8; }
  __device__ __forceinline__ int column() const { return lane_ % 8; }
  __device__ __forceinline__ unsigned rope(int step) const { return ring_.tile(step) + L::kRopeOffset; }

  /// A lane's two tokens of a tile, 32 apart.
  struct Tile {
    Token token[2]; ///< if pages are single tokens, `place` is the page
    int page[2];    ///< if pages have several tokens; a token of a list is a slot, which gives page and place
  };

  /// The place of a lane's token in a half of a tile, and the part that the copy engine copies.
  struct Source {
    int page, inPage;
    unsigned bulk; ///< 1: the first 16 tokens, 2: the others; 4: all 32 are consecutive

    /// The source of another lane, for the whole warp.
    __device__ __forceinline__ Source at(int lane) const {
      return {__shfl_sync(~0u, page, lane), __shfl_sync(~0u, inPage, lane), bulk};
    }
  };

  /// Copies the warp's rows of the unit's queries, and the unit's data for the computing warps. The last row
  /// is repeated up to 16, since a warp's results may depend on all its rows.
  __device__ __forceinline__ void copyQueries(const abi::Item &item, int heads, int number,
                                              int endStep) const {
    const int rows = item.queryCount * Config::kRatio, own = warp_ * kQueryRows + lane_ % kQueryRows;
    const int at = min(own, rows - 1);
    const bool isCopied = warp_ * kQueryRows / 16 * 16 < rows;
    const int caller = isCopied ? args_.callerIndex[item.queryBegin + at / Config::kRatio] : 0;
    int position = 0;
    if constexpr (WarpRows<Config, Variant>::kNeedsQuery)
      position = isCopied ? args_.queryPos[item.queryBegin + at / Config::kRatio] : 0;
    const unsigned place = queryPlace<Config>(args_, caller, heads * Config::kRatio + at % Config::kRatio);
    awaitHead(number);
    UnitHead<Config> &head = ring_.head(number);
    if (threadIdx.x == 0) {
      head.item = item;
      head.endStep = endStep;
      head.heads = heads;
    }
    if (lane_ < kQueryRows && (kQueryRows * kWarps == L::kRows || own < L::kRows)) {
      head.callerIndex[own] = caller;
      if constexpr (WarpRows<Config, Variant>::kNeedsQuery)
        head.queryPos[own] = position;
    }
    WarpRows<Config, Variant>::awaitQueries();
    if (isCopied) {
      const char *from = columnOf(args_.q);
#pragma unroll 1
      for (int row = 0; row < kQueryRows; row += 4)
        copyRow<L::kBlocks, L::kQueryBlockBytes>(
            ring_.queries(), warp_ * kQueryRows + row,
            atPlace<Config, typename Config::Query>(from, __shfl_sync(~0u, place, row + rowOfFour())));
    }
    __syncwarp();
    if (lane_ == 0)
      ptx::mbarrierArrive(ring_.queriesFull());
    ptx::mbarrierArriveAfterCopies(ring_.queriesFull());
  }

  /// Writes a unit without tiles, which marks the end.
  __device__ __forceinline__ void tellEnd(int number, int step) const {
    awaitHead(number);
    if (threadIdx.x == 0)
      ring_.head(number).endStep = step;
    __syncwarp();
    if (lane_ == 0)
      ptx::mbarrierArrive(ring_.queriesFull());
    ptx::mbarrierArriveAfterCopies(ring_.queriesFull());
  }
  /// Waits until the computing warps are done with the previous unit's queries.
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

  /// Copies the lane's part of four rows from `first`, a multiple of 4, for kCount blocks at `to`.
  template <int kCount, int kDistance = kBlockBytes>
  __device__ __forceinline__ void copyRow(unsigned to, int first, const char *source) const {
    const unsigned at = to + first * 128 + rowOfFour() * 128 + ((column() ^ rowOfFour()) ^ (first & 4)) * 16;
#pragma unroll
    for (int block = 0; block < kCount; ++block)
      ptx::cpAsync16(at + block * kDistance, source + block * 128);
  }

  /// Stores the bounds of the unit's rows for a mask.
  __device__ __forceinline__ void keepBounds(const abi::Item &item, int heads, TileBounds &bounds) const {
    if constexpr (Variant::kHasMask) {
      TileBounds rows = boundsOf(item, heads);
      joinLanes(rows);
      __syncwarp(); // the previous unit's bounds have been read
      if (lane_ == 0)
        bounds = rows;
      __syncwarp();
    }
  }

  /// Writes the facts for both parts. `before`: the parity of the slot's previous step.
  __device__ __forceinline__ void writeFacts(const Tile &tile, bool isGathered, int step,
                                             unsigned before) const {
    if (step >= kSlots<Config>)
      ptx::mbarrierWait(ring_.empty(step, kOwn), before);
    writeTileFacts<Config, Variant>(ring_.slot(step), tile.token, boundsOf(tile), isGathered, false, lane_);
    __syncwarp();
    if (lane_ == 0)
      ptx::mbarrierArrive(ring_.full(step, kOther));
  }

  /// The bounds of the unit's rows if a mask needs them; each lane has only its own queries.
  __device__ __forceinline__ TileBounds boundsOf(const abi::Item &item, int heads) const {
    TileBounds bounds{};
    if constexpr (Variant::kHasMask) {
      bounds.headLo = heads * Config::kRatio;
      bounds.headHi = bounds.headLo + Config::kRatio - 1;
      const int first = item.queryBegin + min(lane_, item.queryCount - 1);
      bounds.qLo = bounds.qHi = args_.queryPos[first]; // only the first load: nothing waits for it here
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

  /// The bounds of the tile's tokens, if a mask needs them.
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

  /// Whether the mask leaves any of the tile visible; otherwise it need not be copied.
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

  /// Whether no query sees any of a tile; then it need not be copied.
  __device__ __forceinline__ bool isHidden(const Tile &tile, const TokenBounds &tokens,
                                           const TileBounds &bounds) const {
    if constexpr (kHasSlots<Config>) // a list may have no tokens there
      if (__all_sync(~0u,
                     tile.token[0].visible == kUnseen<Config> && tile.token[1].visible == kUnseen<Config>))
        return true;
    return !mayBeSeen(tokens, bounds);
  }

  static __device__ __forceinline__ void hide(Tile &tile) {
    tile.token[0].visible = tile.token[1].visible = kUnseen<Config>;
  }

  static __device__ __forceinline__ void find(const abi::Item &item, Tokens &tokens, int index, Tile &tile) {
    tokens.find(index, item.tokens, tile.token);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if constexpr (!WarpRows<Config, Variant>::kNeedsToken) // registers are few
        tile.token[half].position = 0;
      if constexpr (!kNeedsDepth)
        tile.token[half].depth = 0;
    }
  }

  /// Looks up both halves together: otherwise the second lookup would wait for the first.
  __device__ __forceinline__ void lookUpPages(Tile &tile) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      int &place = tile.token[half].place;
      if constexpr (Config::kPageSize == 1 && !kHasSlots<Config>)
        place = args_.pageTable[place];
      if constexpr (kHasPages) {
        const unsigned page = static_cast<unsigned>(place) / Config::kPageSize;
        if constexpr (kHasSlots<Config>)
          tile.page[half] = static_cast<int>(page);
        else
          tile.page[half] = args_.pageTable[page];
      }
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
