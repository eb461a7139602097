#pragma once

#include "deft/sm90/byte_cache.cuh"
#include "deft/sm90/tile_slot.cuh"

/// The layout of a block's shared memory in the sm90 family, and the roles of its threads. The host's
/// counterpart is compiler/kernels/Sm90.cpp; every generated file asserts that both agree.
namespace deft::sm90 {

/// The queries of a unit come in pieces of 64 rows, one for each warpgroup with its own rows.
constexpr int kPieceRows = 64;
struct alignas(16) PieceHead {
  abi::Item item; ///< without tokens: no more work
  int callerIndex[kPieceRows];
  int queryPos[kPieceRows]; ///< if hooks need it
};

/// K and V tiles and pieces of queries are stored in blocks of 64 rows and 64 columns. A row of a block is
/// 128 bytes, the widest swizzle of wgmma: 16-byte column c of row r is stored at column c ^ (r % 8).
template <class Config> struct LayoutOf {
  /// Computing warpgroups, in addition to the copying one. Two blocks with one share a multiprocessor.
  static constexpr int kGroups = Config::kWarps / 4 - 1;
  static constexpr int kBlocksAtOnce = kGroups == 1 ? 2 : 1;
  static_assert(Config::kWarps % 4 == 0 && kGroups >= 1 && kGroups <= 3);
  /// In tall blocks, each warpgroup has its own rows for every item: none joins the sums of another.
  static constexpr bool kIsTall = kGroups == 3;
  static constexpr int kConsumerWarps = 4 * kGroups;
  /// Copying warps that share a tile: two in light blocks or with two stages, where half would be idle.
  static constexpr int kTeam = kGroups == 1 || Config::kStages == 2 ? 2 : 1;
  /// Whether K has many columns but V few.
  static constexpr bool kIsLong = Config::kKeyDim > 128 && Config::kValueDim <= 128;
  /// Whether queries stay in shared memory until the unit's last product. With many columns of V, the queries
  /// do not fit into registers; in tall blocks that starts above 64 columns of K. If V has few columns,
  /// threads of wide blocks can hold up to 192 columns of queries.
  static constexpr bool kQueriesStay = Config::kValueDim > 128 ||
                                       (kIsLong && (kGroups == 1 || Config::kKeyDim > 192)) ||
                                       (kIsTall && Config::kKeyDim > 64);
  /// Pieces with room in shared memory: if queries stay and all fit, the next unit's have their own places.
  static constexpr int kQueryPieces =
      kQueriesStay && !kIsLong && !kIsTall && Config::kKeyDim <= 192 ? 2 * kGroups : kGroups;

  /// Pieces of queries look like tiles of K, so the same copy code and offsets serve both.
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

  /// Whether stages hold an 8-bit cache's bytes, and computing warps convert them into a single tile. That
  /// holds in light blocks whose columns are too many for two stages of tiles besides the bytes. Otherwise
  /// copying warps convert, and stages are tiles.
  static constexpr bool kHoldsBytes =
      kHasBytes<Config> && kGroups == 1 && Config::kKeyDim > 64 && Config::kKeyDim <= 128;
  static constexpr int kTiles = kHoldsBytes ? 1 : Config::kStages;
  /// The distance between the keys of stages, and from a stage's keys to its values. Values follow the keys
  /// of their stage, or, if tiles of K and V are alike, the keys of all stages.
  static constexpr int kStageBytes = kAreAlike ? kKeyTileBytes : kKeyTileBytes + kValueTileBytes;
  static constexpr int kValueOffset = kAreAlike ? kTiles * kKeyTileBytes : kKeyTileBytes;
  static constexpr int kAllTileBytes = kTiles * (kKeyTileBytes + kValueTileBytes);

  /// A buffer for each warp of a warpgroup. In it, the sums of the other warpgroup wait to be joined, or each
  /// warpgroup arranges 16 rows of results for memory. It takes all columns at once if shared memory and
  /// registers allow that, otherwise so few that four stages fit. Rows of results are padded to an odd number
  /// of 16-byte columns, so that writing eight of them has no bank conflicts. With a single tile, the buffers
  /// reuse the memory of its values.
  static constexpr int kBufferOffset = kHoldsBytes ? kValueOffset : kAllTileBytes;
  static constexpr int kBufferColumns = kIsLong || kIsTall         ? 32
                                        : Config::kValueDim <= 128 ? Config::kValueDim
                                                                   : 96;
  static constexpr int kRowBytes = 2 * kBufferColumns + 16;
  /// The end of the column tiles that share a buffer with column tile `first`.
  static constexpr __device__ __forceinline__ int bufferEnd(int first) {
    return first + kBufferColumns / 8 < Config::kValueDim / 8 ? first + kBufferColumns / 8
                                                              : Config::kValueDim / 8;
  }
  static constexpr int kHalfBufferBytes = 16 * kRowBytes;
  static constexpr int kBufferBytes = kGroups * kHalfBufferBytes;
  static constexpr int kFactsOffset = 16 * kBufferColumns * 4; ///< maxima and sums within a buffer
  static_assert(kGroups != 2 || kFactsOffset + 32 * 16 == kBufferBytes);

  static constexpr int kBuffersEnd = kBufferOffset + 4 * kBufferBytes;
  static constexpr int kTilesEnd = kBuffersEnd > kAllTileBytes ? kBuffersEnd : kAllTileBytes;

  /// The contents of stages for K and V: tiles, or their bytes with one token in each row of a block.
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
  /// The facts of a tile, followed by the elements of its tokens if there are arrays over tokens.
  static constexpr int kSlotBytes =
      static_cast<int>(sizeof(TileSlot)) + TokenArrays<Config>::kCount * TileSlot::kTokens * 4;
  static constexpr int kBarrierOffset = kSlotOffset + Config::kStages * kSlotBytes;

  /// Where bytes of K and V wait until a copying warp converts them: some tiles for each such warp. In each
  /// half of a tile, keys come before values.
  static constexpr int kStagingOffset = kBarrierOffset + 2 * (Config::kStages + kQueryPieces) * 8;
  static constexpr int kHalfTileBytes = 2 * BytePieces<Config::kKeyDim>::kBytes;
  static constexpr int kStagingBytes =
      kHasBytes<Config> && !kHoldsBytes ? 4 * kStagingSlots * 2 / kTeam * kHalfTileBytes : 0;

  static constexpr int kAlignment = 1024; ///< needed by the swizzle; the launch guarantees only 16
  static_assert(kQueryOffset % kAlignment == 0);
  static_assert(kStagingOffset % 16 == 0);
  static constexpr int kBytes = kStagingOffset + kStagingBytes + kAlignment;

  static __device__ __forceinline__ unsigned offset(int row, int column) {
    return static_cast<unsigned>(column / 8 * kBlockBytes + row * 128 + ((column % 8) ^ (row & 7)) * 16);
  }
};

/// For configs in the form of generated files as well.
template <class Config> using Layout = LayoutOf<Factored<Config>>;

/// Dynamic shared memory of one block.
template <class Config> __host__ __device__ constexpr int smemBytes() { return Layout<Config>::kBytes; }

/// The ring of KV tiles. A stage is full when the producer's copies have landed. It is empty when every
/// consumer warp has arrived. Steps are counted over all units of a block, and so are pieces of
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
  /// The keys in a stage; its values follow at L::kStagedValueOffset.
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
