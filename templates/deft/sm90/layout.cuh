#pragma once

#include "deft/sm90/byte_cache.cuh"
#include "deft/sm90/tile_slot.cuh"

/// How a block of the sm90 family lays out its shared memory, and which threads do what. The host's
/// twin is compiler/kernels/Sm90.cpp; every generated file asserts that both agree.
namespace deft::sm90 {

/// The queries of a unit come in pieces of 64 rows, one for each warpgroup that has rows of its own.
constexpr int kPieceRows = 64;
struct alignas(16) PieceHead {
  abi::Item item; ///< of no tokens: there is no more work
  int callerIndex[kPieceRows];
  int queryPos[kPieceRows]; ///< where hooks ask for it
};

/// K and V tiles and pieces of queries are stored in blocks of 64 rows and 64 columns, so that a row of a
/// block is the 128 bytes of wgmma's widest swizzle: 16-byte column c of row r lies at column c ^ (r % 8).
template <class Config> struct LayoutOf {
  /// Warpgroups that compute, beside the one that copies. Of blocks with one there are two a multiprocessor.
  static constexpr int kGroups = Config::kWarps / 4 - 1;
  static constexpr int kBlocksAtOnce = kGroups == 1 ? 2 : 1;
  static_assert(Config::kWarps % 4 == 0 && kGroups >= 1 && kGroups <= 3);
  /// Of tall blocks, each has rows of its own, whatever an item has: none joins another's sums.
  static constexpr bool kIsTall = kGroups == 3;
  static constexpr int kConsumerWarps = 4 * kGroups;
  /// Copying warps that share each tile: two where else half of the four were idle, as in light blocks.
  static constexpr int kTeam = kGroups == 1 || Config::kStages == 2 ? 2 : 1;
  /// Whether K has many columns and V few.
  static constexpr bool kIsLong = Config::kKeyDim > 128 && Config::kValueDim <= 128;
  /// Whether queries are multiplied where they lie, until the unit's last product: with more columns there
  /// are too few registers for them, in tall blocks above 64. Where V has few, threads of wide blocks hold up
  /// to 192 columns of queries.
  static constexpr bool kQueriesStay = Config::kValueDim > 128 ||
                                       (kIsLong && (kGroups == 1 || Config::kKeyDim > 192)) ||
                                       (kIsTall && Config::kKeyDim > 64);
  /// That there is room for: where they stay, the next unit's have places of their own if all fit.
  static constexpr int kQueryPieces =
      kQueriesStay && !kIsLong && !kIsTall && Config::kKeyDim <= 192 ? 2 * kGroups : kGroups;

  /// Pieces of queries are as tiles of K, so that one copier and one offset serve both.
  static_assert(sizeof(typename Config::Key) == 2 && sizeof(typename Config::Value) == 2 &&
                sizeof(typename Config::Query) == 2);
  static constexpr int kKeyColumns = Config::kKeyDim / 8; ///< of 16 bytes
  static constexpr int kValueColumns = Config::kValueDim / 8;
  static constexpr int kBlockBytes = Config::kTileKv * 128;
  static_assert(Config::kTileKv == kPieceRows);
  static constexpr int kKeyTileBytes = (kKeyColumns + 7) / 8 * kBlockBytes;
  static constexpr int kValueTileBytes = (kValueColumns + 7) / 8 * kBlockBytes;
  static constexpr bool kAreAlike = Config::kKeyDim == Config::kValueDim;
  static_assert(kAreAlike || !kHasBytes<Config>, "bytes of K and of V are converted by the same numbers");

  /// Whether stages have an 8-bit cache's bytes, which computing warps convert into the one tile that there
  /// is: in light blocks of so many columns that two stages of tiles leave no room for bytes. Else copying
  /// warps convert, and stages are tiles.
  static constexpr bool kHoldsBytes =
      kHasBytes<Config> && kGroups == 1 && Config::kKeyDim > 64 && Config::kKeyDim <= 128;
  static constexpr int kTiles = kHoldsBytes ? 1 : Config::kStages;
  /// From a stage's keys to the next one's, and to its values: these lie behind its keys, or where tiles are
  /// alike behind those of all stages.
  static constexpr int kStageBytes = kAreAlike ? kKeyTileBytes : kKeyTileBytes + kValueTileBytes;
  static constexpr int kValueOffset = kAreAlike ? kTiles * kKeyTileBytes : kKeyTileBytes;
  static constexpr int kAllTileBytes = kTiles * (kKeyTileBytes + kValueTileBytes);

  /// For each warp of a warpgroup a buffer in which the other warpgroup's sums wait for its own, or 16 rows
  /// of results of each warpgroup are put in order for memory: all columns at a time, where these are few
  /// enough for shared memory and registers, or so few that four stages fit. Rows of
  /// results are padded to an odd number of 16-byte columns: eight of them are written without conflicts.
  /// Where there is one tile, they lie where its values were.
  static constexpr int kBufferOffset = kHoldsBytes ? kValueOffset : kAllTileBytes;
  static constexpr int kBufferColumns = kIsLong || kIsTall         ? 32
                                        : Config::kValueDim <= 128 ? Config::kValueDim
                                                                   : 96;
  static constexpr int kRowBytes = 2 * kBufferColumns + 16;
  /// Where those end that share a buffer with column tile `first`.
  static constexpr __device__ __forceinline__ int bufferEnd(int first) {
    return first + kBufferColumns / 8 < Config::kValueDim / 8 ? first + kBufferColumns / 8
                                                              : Config::kValueDim / 8;
  }
  static constexpr int kHalfBufferBytes = 16 * kRowBytes;
  static constexpr int kBufferBytes = kGroups * kHalfBufferBytes;
  static constexpr int kFactsOffset = 16 * kBufferColumns * 4; ///< in a buffer: maxima and sums
  static_assert(kGroups != 2 || kFactsOffset + 32 * 16 == kBufferBytes);

  static constexpr int kBuffersEnd = kBufferOffset + 4 * kBufferBytes;
  static constexpr int kTilesEnd = kBuffersEnd > kAllTileBytes ? kBuffersEnd : kAllTileBytes;

  /// What stages hold of K and of V: tiles, or their bytes, a token's in a row of a block.
  static constexpr int kStagedKeyColumns = kHoldsBytes ? kKeyColumns / 2 : kKeyColumns; ///< of 16 bytes
  static constexpr int kStagedValueColumns = kHoldsBytes ? kValueColumns / 2 : kValueColumns;
  static constexpr int kStagedKeyBytes = kHoldsBytes ? kBlockBytes : kKeyTileBytes;
  static constexpr int kStagedValueBytes = kHoldsBytes ? kBlockBytes : kValueTileBytes;
  static constexpr int kStagedOffset = kHoldsBytes ? kTilesEnd : 0;
  static constexpr int kStagedStageBytes = kHoldsBytes ? kBlockBytes : kStageBytes;
  static constexpr int kStagedValueOffset = kHoldsBytes ? Config::kStages * kBlockBytes : kValueOffset;

  static constexpr int kQueryOffset = kHoldsBytes ? kStagedOffset + 2 * kStagedValueOffset : kTilesEnd;
  static constexpr int kSlotOffset =
      kQueryOffset + kQueryPieces * (kKeyTileBytes + static_cast<int>(sizeof(PieceHead)));
  /// The facts of a tile, and behind them the elements of its tokens, where there are arrays over tokens.
  static constexpr int kSlotBytes =
      static_cast<int>(sizeof(TileSlot)) + TokenArrays<Config>::kCount * TileSlot::kTokens * 4;
  static constexpr int kBarrierOffset = kSlotOffset + Config::kStages * kSlotBytes;

  /// Where bytes of K and V wait for copying warps to convert them: tiles of each such warp. Keys come before
  /// values in each half of a tile.
  static constexpr int kStagingOffset = kBarrierOffset + 2 * (Config::kStages + kQueryPieces) * 8;
  static constexpr int kHalfTileBytes = 2 * BytePieces<Config::kKeyDim>::kBytes;
  static constexpr int kStagingBytes =
      kHasBytes<Config> && !kHoldsBytes ? 4 * kStagingSlots * 2 / kTeam * kHalfTileBytes : 0;

  static constexpr int kAlignment = 1024; ///< of the swizzle; the launch gives 16
  static_assert(kQueryOffset % kAlignment == 0);
  static_assert(kStagingOffset % 16 == 0);
  static constexpr int kBytes = kStagingOffset + kStagingBytes + kAlignment;

  static __device__ __forceinline__ unsigned offset(int row, int column) {
    return static_cast<unsigned>(column / 8 * kBlockBytes + row * 128 + ((column % 8) ^ (row & 7)) * 16);
  }
};

/// Of a config as generated files have it, too.
template <class Config> using Layout = LayoutOf<Factored<Config>>;

/// Dynamic shared memory of one block.
template <class Config> __host__ __device__ constexpr int smemBytes() { return Layout<Config>::kBytes; }

/// The ring of KV tiles: a stage is full when the producer's copies have landed, empty when each of the
/// consumers' warps has arrived for it. Steps count on over the units of a block, and so do pieces of
/// queries.
template <class Config> struct Ring {
  using L = Layout<Config>;
  unsigned base; ///< shared address
  char *shared;

  __device__ __forceinline__ unsigned full(int step) const {
    return base + L::kBarrierOffset + step % Config::kStages * 8;
  }
  __device__ __forceinline__ unsigned fullParity(int step) const {
    return static_cast<unsigned>(step) / Config::kStages & 1;
  }
  __device__ __forceinline__ unsigned empty(int step) const { return full(step) + Config::kStages * 8; }
  __device__ __forceinline__ unsigned keys(int step) const {
    return L::kTiles == 1 ? base : base + step % Config::kStages * L::kStageBytes;
  }
  __device__ __forceinline__ unsigned values(int step) const { return keys(step) + L::kValueOffset; }
  /// What a stage has of K; of V, that lies L::kStagedValueOffset behind.
  __device__ __forceinline__ unsigned staged(int step) const {
    return base + L::kStagedOffset + step % Config::kStages * L::kStagedStageBytes;
  }
  __device__ __forceinline__ TileSlot &slot(int step) const {
    return *reinterpret_cast<TileSlot *>(shared + L::kSlotOffset + step % Config::kStages * L::kSlotBytes);
  }

  __device__ __forceinline__ unsigned pieceFull(int piece) const {
    return base + L::kBarrierOffset + (2 * Config::kStages + piece % L::kQueryPieces) * 8;
  }
  __device__ __forceinline__ unsigned pieceEmpty(int piece) const {
    return pieceFull(piece) + L::kQueryPieces * 8;
  }
  __device__ __forceinline__ unsigned queries(int piece) const {
    return base + L::kQueryOffset + piece % L::kQueryPieces * L::kKeyTileBytes;
  }
  __device__ __forceinline__ PieceHead &head(int piece) const {
    return reinterpret_cast<PieceHead *>(shared + L::kQueryOffset +
                                         L::kQueryPieces * L::kKeyTileBytes)[piece % L::kQueryPieces];
  }
};

} // namespace deft::sm90
