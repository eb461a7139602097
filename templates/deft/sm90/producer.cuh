#pragma once

#include "deft/ptx/forget.cuh"
#include "deft/ptx/tensor_copy.cuh"
#include "deft/sm90/byte_tiles.cuh"
#include "deft/sm90/dealt_runs.cuh"
#include "deft/sm90/row_copy.cuh"
#include "deft/sm90/run_window.cuh"
#include "deft/sm90/units.cuh"
#include "deft/sm90/write_tile_facts.cuh"

/// The copying warpgroup: it walks the block's units ahead of the consumers and keeps the ring full. Finding
/// a tile's tokens is a chain of loads (item, runs, pages), so its warps take tiles in turn: four chains are
/// in flight at a time. Consecutive tokens are copied in bulk by 16 or 32, the others one by one. The same
/// warps copy a unit's queries, one unit ahead.
namespace deft::sm90 {

template <class Config, class Variant> class Producer {
  using Params = typename Variant::Params;
  using L = Layout<Config>;
  using Rows = RowCopy<Config>; ///< for queries
  using Elements = TileElements<Config, Variant>;
  using Bytes = ByteTiles<Config, Variant>;
  friend Bytes;
  static constexpr int kWarps = 4;
  static constexpr int kTeam = L::kTeam; ///< each warp of a team copies a part, the first writes the facts
  static constexpr int kGroup = 16;      ///< tokens in a bulk copy
  template <int kColumns> static constexpr bool kIsWholeBoxes = kColumns < 8 || kColumns % 8 == 0;
  /// Whether this warp converts an 8-bit cache's bytes to 16-bit tiles.
  static constexpr bool kConverts = kHasBytes<Config> && !L::kHoldsBytes;
  /// Whether a page (or the contiguous cache) can hold a group of consecutive tokens.
  static constexpr bool kHasBulk =
      !kConverts && !kReadsUnions<Config> && (Config::kPageSize <= 1 || Config::kPageSize % kGroup == 0);
  static constexpr bool kHasWide = Config::kPageSize <= 1 || Config::kPageSize % (2 * kGroup) == 0;
  /// Whether a page can hold a tile, and a row fits a box or consists of whole blocks of 64 columns.
  static constexpr bool kHasTile = kHasBulk && kIsWholeBoxes<L::kStagedKeyColumns> &&
                                   kIsWholeBoxes<L::kStagedValueColumns> &&
                                   (Config::kPageSize <= 1 || Config::kPageSize % Config::kTileKv == 0);
  /// Whether registers allow copying a token's K and V together, if both are alike.
  static constexpr bool kCopiesBoth = L::kAreAlike && !kReadsDealt<Config> && !Variant::kHasMask;
  static_assert(Config::kTileKv == 64, "a lane has two tokens");

public:
  /// Called by warps 0 to 2; each prefetches the maps of one box. This also loads the maps' addresses, for
  /// which the first copy would otherwise wait.
  static __device__ __forceinline__ void prefetchMaps(const abi::AttendArgs &args) {
    if (!args.hasMaps || !ptx::electOne())
      return;
#pragma unroll
    for (int box = 0; box < (kHasTile ? 3 : 2); ++box)
      if (threadIdx.x / 32 == box) {
        ptx::prefetch(args.kBoxes[box]);
        ptx::prefetch(args.vBoxes[box]);
      }
  }

  /// With two loads; the compiler would load each word separately.
  static __device__ __forceinline__ abi::Item load(const abi::Item *item) {
    const int4 low = reinterpret_cast<const int4 *>(item)[0], high = reinterpret_cast<const int4 *>(item)[1];
    return {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
  }
  static __device__ __forceinline__ abi::Item itemOf(const abi::AttendArgs &args, int unit) {
    return load(args.items + args.itemBegin + Units<Config>(args).item(unit));
  }

  __device__ __forceinline__ Producer(const abi::AttendArgs &args, const Params &params,
                                      const Ring<Config> &ring)
      : args_(args), params_(params), ring_(ring), warp_(threadIdx.x / 32), lane_(threadIdx.x % 32) {}

  /// `first` is the block's first item.
  __device__ __forceinline__ void run(const abi::Item &first) const {
    const Units<Config> units(args_);
    int step = 0, piece = 0; // of the unit's first tile and first rows
    typename Bytes::Staged staged;
    abi::Item item = first;
    for (int unit = blockIdx.x; unit < units.count(); unit = units.next(unit)) {
      if (unit != blockIdx.x)
        item = itemOf(args_, unit);
      const int tiles = tilesOf<Config>(item);
      int row = 0;
      do { // a place for rows has a fixed warp, a stage a fixed team; the first differ
        if (piece % L::kQueryPieces == kWarps - 1 - warp_) {
          if constexpr (kConverts)
            Bytes::finish(*this,
                          staged); // the consumers may need it before they are done with other queries
          copyQueries(item, units.kvHead(unit), row, piece);
        }
        ++piece;
        row += kPieceRows;
      } while (row < item.queryCount * Config::kRatio);
      if (tiles == 0) {
        if (units.isEmptyOneLast())
          break;
        continue;
      }
      if constexpr (kConverts)
        Bytes::convertUnit(*this, item, units.kvHead(unit), step, step + tiles, staged);
      else
        copyUnit(item, units.kvHead(unit), step, step + tiles);
      step += tiles;
    }
    if constexpr (kConverts)
      Bytes::finish(*this, staged);
  }

private:
  /// The warp's index in its team, and whether it copies this half of a tile.
  __device__ __forceinline__ int member() const { return warp_ % kTeam; }
  __device__ __forceinline__ bool isMine(int half) const { return kTeam == 1 || member() == half; }

  /// A lane's two tokens of a tile, 32 apart.
  struct Tile {
    Token token[2]; ///< if pages are single tokens, `place` is the page
    int page[2];    ///< if pages have several tokens
  };

  /// The place of a lane's token in a half, and the tokens of the half that the copy engine copies.
  struct Source {
    int page, inPage;
    unsigned bulk; ///< 1: the first 16 tokens, 2: the others, 4: all 32 at once

    /// The source of another lane, for the whole warp.
    __device__ __forceinline__ Source at(int lane) const {
      return {__shfl_sync(~0u, page, lane), __shfl_sync(~0u, inPage, lane), bulk};
    }
  };

  /// Copies a piece of the unit's queries, and the unit's data for the consumers. A warp's last row is
  /// repeated up to 16, since a warp's results may depend on all its rows.
  __device__ __forceinline__ void copyQueries(const abi::Item &item, int kvHead, int firstRow,
                                              int piece) const {
    const int rows = item.queryCount * Config::kRatio - firstRow;
    const int copied = item.tokens > 0 ? min((rows + 15) / 16 * 16, kPieceRows) : 0;
    const unsigned full = ring_.pieceFull(piece), to = ring_.queries(piece);
    PieceHead &head = ring_.head(piece);
    constexpr int kRounds = kPieceRows / 32;
    const Rows copier(lane_);
    const char *q = copier.column(args_.q);
    int callers[kRounds], positions[kRounds] = {};
    unsigned places[kRounds];                                // of the lane's row in each round
    constexpr int kUnrolledCopies = L::kGroups == 1 ? 1 : 4; ///< at once: with more, light blocks spill
#pragma unroll
    for (int i = 0; i < kRounds; ++i) {
      const int at = firstRow + min(i * 32 + lane_, rows - 1);
      callers[i] = i * 32 + lane_ < copied ? args_.callerIndex[item.queryBegin + at / Config::kRatio] : 0;
      if constexpr (WarpRows<Config, Variant>::kNeedsQuery)
        positions[i] = i * 32 + lane_ < copied ? args_.queryPos[item.queryBegin + at / Config::kRatio] : 0;
      places[i] = queryPlace<Config>(args_, callers[i], kvHead * Config::kRatio + at % Config::kRatio);
    }
    if (piece >= L::kQueryPieces)
      ptx::mbarrierWait(ring_.pieceEmpty(piece), (piece / L::kQueryPieces - 1) & 1);
    if (lane_ == 0)
      head.item = item;
    WarpRows<Config, Variant>::awaitQueries();
#pragma unroll
    for (int i = 0; i < kRounds; ++i) {
      head.callerIndex[i * 32 + lane_] = callers[i];
      if constexpr (WarpRows<Config, Variant>::kNeedsQuery)
        head.queryPos[i * 32 + lane_] = positions[i];
#pragma unroll 1
      for (int warpRow = i * 32; warpRow < min(i * 32 + 32, copied); warpRow += 16) {
#pragma unroll kUnrolledCopies
        for (int row = 0; row < 16; row += Rows::kRows)
          copier.copy(to, warpRow + row, q, __shfl_sync(~0u, places[i], (warpRow + row) % 32 + copier.row()));
      }
    }
    __syncwarp();
    if (lane_ == 0)
      ptx::mbarrierArrive(full);
    ptx::mbarrierArriveAfterCopies(full);
  }

  /// Copies the tiles of the warp's team in steps [begin, end). A stage is always filled by the same team;
  /// otherwise a warp could mistake an older phase of the stage's barrier for its own.
  __device__ __forceinline__ void copyUnit(const abi::Item &item, int kvHead, int begin, int end) const {
    auto runs = runsOf(item);
    TileBounds rows = boundsOf(item, kvHead);
    bool areJoined = false;
    for (int step = begin; step < end; ++step) {
      if (step % Config::kStages % (kWarps / kTeam) != warp_ / kTeam)
        continue;
      if constexpr (kReadsDealt<Config>) // recompute values that depend on it, to save registers
        ptx::forgetHere(kvHead);
      Tile tile; // found while the consumers still use the stage
      const bool isDealt = find(item, runs, step - begin, tile);
      lookUpPages(tile);
      const Source low = sourceOf(tile, 0), high = sourceOf(tile, 1);
      if constexpr (Variant::kHasMask) {
        if (!areJoined) // not earlier: loads of pages need not wait for those of queries
          joinLanes(rows);
        areJoined = true;
      }
      const TokenBounds tokens = boundsOf(tile);
      const bool isHidden = !mayBeSeen(tokens, rows);
      if (isHidden)
        tile.token[0].visible = tile.token[1].visible = kNobody;
      if (step >= Config::kStages)
        ptx::mbarrierWait(ring_.empty(step), (step / Config::kStages - 1) & 1);
      if (!isHidden)
        copy(low, high, kvHead, step);
      if (member() == 0) {
        if (!isHidden)
          elements().copy(slotsOf(tile).of, kvHead, step);
        writeFacts(tile.token, tokens, (low.bulk & high.bulk & 3) != 3, isDealt,
                   step); // overlaps the copies
      }
      ptx::mbarrierArriveAfterCopies(ring_.full(step));
    }
  }

  /// The bounds of the unit's rows if a mask needs them; each lane has only its own queries.
  __device__ __forceinline__ TileBounds boundsOf(const abi::Item &item, int kvHead) const {
    TileBounds bounds{};
    if constexpr (Variant::kHasMask) {
      bounds.headLo = kvHead * Config::kRatio;
      bounds.headHi = bounds.headLo + Config::kRatio - 1;
      bounds.kvHead = kvHead;
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

  __device__ __forceinline__ auto runsOf(const abi::Item &item) const {
    const abi::Run *runs = args_.runs + item.runBegin;
    if constexpr (kReadsDealt<Config>) {
      using Dealt = DealtRuns<Config, Variant>;
      __shared__ typename Dealt::Window windows[kWarps];
      return Dealt(runs, item, windows[warp_], lane_);
    } else {
      return RunWindow(runs, item.runCount, lane_);
    }
  }

  /// Finds the tokens of a tile; returns whether they are dealt.
  __device__ __forceinline__ bool find(const abi::Item &, const DealtRuns<Config, Variant> &runs, int index,
                                       Tile &tile) const {
    return runs.find(index, tile.token);
  }
  __device__ __forceinline__ bool find(const abi::Item &item, RunWindow &runs, int index, Tile &tile) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int first = index * Config::kTileKv + half * 32;
      tile.token[half] = runs.find(first, item.tokens - 1);
      if (first + lane_ >= item.tokens) // the last token is copied again, hidden
        tile.token[half].visible = kNobody;
    }
    return false;
  }

  /// Looks up both halves together: otherwise the second lookup would wait for the first.
  __device__ __forceinline__ void lookUpPages(Tile &tile) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      int &place = tile.token[half].place;
      if constexpr (Config::kPageSize == 1 || kReadsUnions<Config>) // for unions: gives the token's slot
        place = args_.pageTable[place];
      if constexpr (Config::kPageSize > 1) {
        const unsigned page = static_cast<unsigned>(place) / Config::kPageSize;
        tile.page[half] = kReadsUnions<Config> ? static_cast<int>(page) : args_.pageTable[page];
      }
    }
  }

  /// The cache slots of the lane's two tokens.
  struct Slots {
    long long of[2];
  };
  static __device__ __forceinline__ Slots slotsOf(const Tile &tile) {
    const Source low = placeOf(tile, 0), high = placeOf(tile, 1);
    constexpr int kPage = Config::kPageSize > 1 ? Config::kPageSize : 1;
    return {1ll * low.page * kPage + low.inPage, 1ll * high.page * kPage + high.inPage};
  }
  __device__ __forceinline__ Elements elements() const { return {params_, ring_, lane_}; }

  static __device__ __forceinline__ Source placeOf(const Tile &tile, int half) {
    const Token &token = tile.token[half];
    Source source{token.place, 0, 0};
    if constexpr (Config::kPageSize > 1) {
      source.page = tile.page[half];
      source.inPage = static_cast<int>(static_cast<unsigned>(token.place) % Config::kPageSize);
    }
    return source;
  }

  __device__ __forceinline__ Source sourceOf(const Tile &tile, int half) const {
    Source source = placeOf(tile, half);
    if constexpr (kHasBulk) {
      // Lanes whose token directly follows the previous lane's in memory. Neighbours on the path may not: a
      // request may have the same page at two consecutive places.
      const int inPage = Config::kPageSize > 1 ? source.inPage : source.page;
      const unsigned follows = __ballot_sync(~0u, isNext(inPage, source.page, __shfl_up_sync(~0u, inPage, 1),
                                                         __shfl_up_sync(~0u, source.page, 1)));
      if (args_.hasMaps)
        source.bulk = ((follows & 0xfffe) == 0xfffe ? 1 : 0) |
                      ((follows & 0xfffe0000) == 0xfffe0000 ? 2 : 0) |
                      (kHasWide && (follows | 1) == ~0u ? 4 : 0);
    }
    return source;
  }

  static __device__ __forceinline__ bool isNext(int inPage, int page, int inPageBefore, int pageBefore) {
    if constexpr (Config::kPageSize <= 1)
      return page == pageBefore + 1;
    return page == pageBefore && inPage == inPageBefore + 1;
  }

  __device__ __forceinline__ void copy(const Source &low, const Source &high, int kvHead, int step) const {
    if (kHasTile && isWhole(low, high)) {
      copyTile(low.at(0), kvHead, step);
    } else {
      if (isMine(0))
        copyHalf(low, 0, kvHead, step);
      if (isMine(1))
        copyHalf(high, 1, kvHead, step);
    }
  }

  /// Whether the tile's tokens are consecutive in memory.
  static __device__ __forceinline__ bool isWhole(const Source &low, const Source &high) {
    constexpr bool kInPage = Config::kPageSize > 1;
    return (low.bulk & high.bulk & 4) != 0 && high.page == low.page + (kInPage ? 0 : 32) &&
           high.inPage == low.inPage + (kInPage ? 32 : 0);
  }

  __device__ __forceinline__ void copyTile(const Source &source, int kvHead, int step) const {
    if (!ptx::electOne())
      return;
    const unsigned to = ring_.staged(step), full = ring_.full(step);
    constexpr int kKeyBytes = L::kStagedKeyBytes, kValueBytes = L::kStagedValueBytes;
    ptx::mbarrierExpectBytes(full, kTeam == 1  ? kKeyBytes + kValueBytes
                                   : isMine(0) ? kKeyBytes
                                               : kValueBytes);
    if (isMine(0))
      copyPart(to, args_.kBoxes[2], full, kvHead, source);
    if (isMine(1))
      copyPart(to + L::kStagedValueOffset, args_.vBoxes[2], full, kvHead, source);
  }

  static __device__ __forceinline__ void copyPart(unsigned to, const abi::TensorMap &map, unsigned full,
                                                  int kvHead, const Source &source) {
    if constexpr (Config::kPageSize <= 1)
      ptx::tensorCopy(to, map, full, 0, source.page, 0, kvHead);
    else
      ptx::tensorCopy(to, map, full, 0, source.inPage, 0, kvHead, source.page);
  }

  __device__ __forceinline__ void copyHalf(const Source &source, int half, int kvHead, int step) const {
    const unsigned keys = ring_.staged(step);
    if constexpr (kHasBulk) {
      const unsigned to = keys + half * 32 * 128, full = ring_.full(step);
      if (source.bulk & 4) {
        copyBox<1>(to, full, kvHead, source.at(0));
      } else {
#pragma unroll
        for (int group = 0; group < 2; ++group)
          if (source.bulk >> group & 1)
            copyBox<0>(to + group * kGroup * 128, full, kvHead, source.at(group * kGroup));
      }
    }
    if ((source.bulk & 3) != 3)
      copyTokens(source, half, keys, kvHead);
  }

  /// Copies K and V of 16 or 32 tokens by the copy engine. All lanes call it with the same arguments.
  template <int kBox>
  __device__ __forceinline__ void copyBox(unsigned to, unsigned full, int kvHead,
                                          const Source &source) const {
    constexpr int kKeyBlocks = L::kStagedKeyBytes / L::kBlockBytes;
    constexpr int kValueBlocks = L::kStagedValueBytes / L::kBlockBytes;
    if (!ptx::electOne())
      return;
    ptx::mbarrierExpectBytes(full, (kKeyBlocks + kValueBlocks) * (kGroup << kBox) * 128);
#pragma unroll
    for (int b = 0; b < (kKeyBlocks > kValueBlocks ? kKeyBlocks : kValueBlocks); ++b) {
      const unsigned block = to + b * L::kBlockBytes;
      if (b < kKeyBlocks)
        copyBlock(block, args_.kBoxes[kBox], full, b, kvHead, source);
      if (b < kValueBlocks)
        copyBlock(block + L::kStagedValueOffset, args_.vBoxes[kBox], full, b, kvHead, source);
    }
  }
  static __device__ __forceinline__ void copyBlock(unsigned to, const abi::TensorMap &map, unsigned full,
                                                   int block, int kvHead, const Source &source) {
    if constexpr (Config::kPageSize <= 1)
      ptx::tensorCopy(to, map, full, block * 64, kvHead, source.page);
    else
      ptx::tensorCopy(to, map, full, block * 64, kvHead, source.inPage, source.page);
  }

  /// Copies K and V of the half's groups that the copy engine does not: together if both have the same
  /// layout, otherwise in turn, since two places would need registers that dealt plans and masks use.
  __device__ __forceinline__ void copyTokens(const Source &source, int half, unsigned keys,
                                             int kvHead) const {
    const unsigned key = tokenPlace<Config>(args_.kCache, kvHead, source.page, source.inPage);
    if (kCopiesBoth && areAlike(args_.kCache, args_.vCache)) {
      copyTokensOf<2, L::kStagedKeyColumns>(source, half, keys, args_.k, key);
    } else {
      copyTokensOf<1, L::kStagedKeyColumns>(source, half, keys, args_.k, key);
      copyTokensOf<1, L::kStagedValueColumns>(
          source, half, keys + L::kStagedValueOffset, args_.v,
          tokenPlace<Config>(args_.vCache, kvHead, source.page, source.inPage));
    }
  }

  /// Copies a tensor, or both K and V, in kColumns columns of 16 bytes. Each lane passes the place of its
  /// token to the lanes that copy it.
  template <int kTensors, int kColumns>
  __device__ __forceinline__ void copyTokensOf(const Source &source, int half, unsigned to,
                                               const void *tensor, unsigned own) const {
    using Cached = RowCopy<Config, typename StoredKeyOf<Config>::Type, kColumns>;
    const Cached copier(lane_);
    // Unrolls groups, or rows of a group in fours: otherwise some kernels spill.
    constexpr int kGroupsAtOnce = Config::kKeyDim > 128 ? 2 : 1, kFoursAtOnce = 3 - kGroupsAtOnce;
    const char *column = copier.column(tensor), *values = kTensors > 1 ? copier.column(args_.v) : nullptr;
#pragma unroll kGroupsAtOnce
    for (int group = 0; group < 2; ++group) {
      if (source.bulk >> group & 1)
        continue;
#pragma unroll kFoursAtOnce
      for (int token = 0; token < kGroup; token += Cached::kRows) {
        const unsigned place = __shfl_sync(~0u, own, group * kGroup + token + copier.row());
        const int row = half * 32 + group * kGroup + token;
        copier.copy(to, row, column, place);
        if constexpr (kTensors > 1)
          copier.copy(to + L::kStagedValueOffset, row, values, place);
      }
    }
  }

  /// Writes the tile's facts for the consumers.
  __device__ __forceinline__ void writeFacts(const Token (&token)[2], const TokenBounds &tokens,
                                             bool isGathered, bool isDealt, int step) const {
    writeTileFacts<Config, Variant>(ring_.slot(step), token, tokens, isGathered, isDealt, lane_);
    __syncwarp();
    if (lane_ == 0)
      ptx::mbarrierArrive(ring_.full(step));
  }

  const abi::AttendArgs &args_;
  const Params &params_;
  const Ring<Config> &ring_;
  const int warp_, lane_;
};

/// Arrivals that make a piece or a stage full: one for the copies of each thread, and one more for the
/// facts.
constexpr int kPieceArrivals = 32 + 1;
template <class Config> constexpr int kFullArrivals = 32 * Layout<Config>::kTeam + 1;

} // namespace deft::sm90
