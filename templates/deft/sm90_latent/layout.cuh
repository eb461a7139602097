#pragma once

#include "deft/common/fragment.cuh"
#include "deft/common/latent_bytes.cuh"
#include "deft/ptx/mbarrier.cuh"
#include "deft/sm90/tile_slot.cuh"

/// The layout of a block's shared memory in the sm90_latent family. The host's counterpart is
/// compiler/kernels/Sm90Latent.cpp; every generated file asserts that both agree.
namespace deft::sm90_latent {

using sm90::TileFacts;
using sm90::TileSlot;

/// A config with the members that sm90's parts need: no tokens are dealt to warps.
template <class Config> struct Undealt : Config {
  static constexpr bool kIsDealt = false;
};
/// The config of the kernel: tiles have q's type even if the cache has bytes.
template <class Config> using Known = Multiplied<Undealt<Config>>;

constexpr int kComputingGroups = 2; ///< warpgroups
/// Blocks for units of at most 16 rows have a form of products of their own (few_rows.cuh).
template <class Config> constexpr bool kHasFewRows = Config::kTileQ == 16;
/// Whether a tile of a cache of bytes keeps the bytes. Blocks for few rows convert them in registers, other
/// blocks while they copy.
template <class Config> constexpr bool kKeepsBytes = kHasFewRows<Config> && kIsOfBytes<Config>;
template <class Config> constexpr bool kCopiesConvert = kIsOfBytes<Config> && !kKeepsBytes<Config>;
/// Copying warps, the first ones of a block. Where they convert bytes, two share a scheduler: one issues
/// while the other waits.
template <class Config> constexpr int kCopyingWarps = kCopiesConvert<Config> ? 8 : 4;
/// The type of V's columns in products. Blocks for few rows multiply the values of a cache of bytes as they
/// are: f16 has all of them. Scales multiply scores and weights instead (few_scales.cuh).
template <class Config, bool kIsExact = kKeepsBytes<Config>> struct LatentOf {
  using Type = typename Config::Key;
};
template <class Config> struct LatentOf<Config, true> {
  using Type = f16;
};
template <class Config> using Latent = typename LatentOf<Config>::Type;
/// How many scales of a token these blocks multiply.
template <class Config>
constexpr int kFewScales = kHasFewRows<Config> && kHasScales<Config> ? ByteRow<Config>::kScales : 0;

/// For tiles. A tile of bytes takes half as much memory.
template <class Config> constexpr int kSlots = kKeepsBytes<Config> ? 4 : 2;
constexpr int kBlockBytes = 64 * 128; ///< 64 tokens by 64 columns, or by 128 columns of bytes

/// A unit's data for the computing warps. There is one for this unit and one for the next.
template <class Config> struct alignas(16) UnitHead {
  abi::Item item;
  int callerIndex[Config::kTileQ];
  int queryPos[Config::kTileQ]; ///< if hooks need it
  int endStep;                  ///< the step after its last tile; a unit without tiles marks the end
  int heads;                    ///< the group of query heads
};

/// A warpgroup's reference and sum for a row, over its own tiles.
struct alignas(8) RowShare {
  float reference, sum;
};

/// Tiles and queries are stored in blocks of 64 columns. A row is 128 bytes, the widest swizzle of wgmma. The
/// blocks of V's columns come first, then that of the other (rotated) columns.
///
/// Each warpgroup has all rows and half of V's columns. A slot is released in two parts, since the warpgroup
/// that makes a tile's weights finishes its half sooner: this is part kOwn. Part kOther is the other half and
/// the last block. Once both have read that block, it holds the weights for the other warpgroup.
enum Part { kOwn = 0, kOther = 1 };

/// Memory of blocks for few rows, behind the queries. Each warpgroup has its own.
template <class Config> struct FewLayout {
  static constexpr int kRows = 16, kWarps = 4; ///< of a warpgroup
  static constexpr int kTokens = 16;           ///< a warp's tokens in a tile
  using Out = Fragment<2>;                     ///< a warp's 16 columns of a block of V by all rows (columnOf)
  static constexpr int kColumns = Config::kValueDim / kComputingGroups;
  static constexpr int kWeightBytes = kRows * 128; ///< of a tile's tokens by rows
  static constexpr int kWeightSets = kFewScales<Config> > 0 ? kFewScales<Config> : 1; ///< by scales
  static constexpr int kTileWeightBytes = kWeightSets * kWeightBytes;                 ///< for two tiles
  static constexpr int kTurnedRow = 16 + 4;            ///< floats; the last four avoid bank conflicts
  static constexpr int kResultRow = kColumns * 2 + 16; ///< bytes, likewise
  /// A warp's scores of 16 tokens on their way to other lanes, and later the warpgroup's results.
  static constexpr int kTurnedBytes = kRows * kTurnedRow * 4;
  static constexpr int kStageBytes = kKeepsBytes<Config>                         ? 0
                                     : kWarps * kTurnedBytes > kRows *kResultRow ? kWarps *kTurnedBytes
                                                                                 : kRows *kResultRow;
  static constexpr int kGivenBytes = kRows * kColumns * 4; ///< sums for the other warpgroup

  static constexpr int kWeightOffset = 0;
  /// Tiles of bytes and weights by scales leave no room for results. Sums for the other warpgroup use the
  /// memory of weights. That warpgroup has its results there once it has read them.
  static constexpr bool kIsGivenInWeights = kKeepsBytes<Config>;
  static constexpr int kGroupWeightBytes =
      kIsGivenInWeights && kGivenBytes > 2 * kTileWeightBytes ? kGivenBytes : 2 * kTileWeightBytes;
  static constexpr int kStageOffset = kWeightOffset + kComputingGroups * kGroupWeightBytes;
  static constexpr int kGivenOffset =
      kIsGivenInWeights ? kWeightOffset : kStageOffset + kComputingGroups * kStageBytes;
  static constexpr int kGivenDistance =
      kIsGivenInWeights ? kGroupWeightBytes : kGivenBytes; ///< of warpgroups
  /// Maxima and sums of each warp's tokens, then the rows' references.
  static constexpr int kMaximumOffset = kStageOffset + kComputingGroups * kStageBytes +
                                        (kIsGivenInWeights ? 0 : kComputingGroups * kGivenBytes);
  static constexpr int kSumOffset = kMaximumOffset + kComputingGroups * kWarps * kRows * 4;
  static constexpr int kReferenceOffset = kSumOffset + kComputingGroups * kWarps * kRows * 4;
  /// The last steps in which a reference had to grow: one of even and one of odd tiles of the warpgroup.
  static constexpr int kGrowthOffset = kReferenceOffset + kComputingGroups * kRows * 4;
  /// For a cache of bytes: factors of the rows' queries, and each warp's largest scale.
  static constexpr int kQueryFactorOffset = kGrowthOffset + kComputingGroups * 2 * 4;
  static constexpr int kLargestScaleOffset = kQueryFactorOffset + (kKeepsBytes<Config> ? kRows * 4 : 0);
  static constexpr int kBytes =
      kLargestScaleOffset + (kFewScales<Config> > 0 ? kComputingGroups * kWarps * 4 : 0);

  /// The set of weights for a block of 64 columns of V, which is that of its scale.
  static __device__ __forceinline__ constexpr int setOf(int block) {
    return kWeightSets > 1 ? block * 64 / (Config::kValueDim / kWeightSets) : 0;
  }
  /// The place of a set of a step's weights. There are two places in turn, since slower warps may still
  /// multiply the tile before.
  static __device__ __forceinline__ int weightsAt(int group, int step, int set) {
    return kWeightOffset + group * kGroupWeightBytes + step / kComputingGroups % 2 * kTileWeightBytes +
           set * kWeightBytes;
  }
  /// The column of a lane's sums of half r of a warp's 16 columns. A load of bytes gives each lane two
  /// neighbouring ones.
  static __device__ __forceinline__ int columnOf(int lane, int r) {
    return kKeepsBytes<Config> ? lane / 4 * 2 + r : fragmentRow(lane, r);
  }
};

template <class Config> struct Layout {
  static constexpr int kRows = Config::kTileQ; ///< of a unit; each warp of a warpgroup has 16 of 64
  static constexpr int kBlocks = Config::kKeyDim / 64;
  static constexpr int kValueBlocks = Config::kValueDim / 64;
  static constexpr int kHalfBlocks = kValueBlocks / 2;
  static_assert(Config::kKeyDim % 64 == 0 && Config::kValueDim % 128 == 0 && kBlocks == kValueBlocks + 1);
  static_assert(sizeof(typename Config::Key) == 2 && kIsSame<typename Config::Key, typename Config::Value> &&
                kIsSame<typename Config::Key, typename Config::Query>);
  static_assert(kRows == 64 || kHasFewRows<Config>);
  static_assert(Config::kTileKv == 64 && Config::kStages == kSlots<Config> &&
                Config::kWarps == kCopyingWarps<Config> + 4 * kComputingGroups && Config::kRatio <= kRows);
  static constexpr int kRopeOffset =
      kValueBlocks * kBlockBytes / (kKeepsBytes<Config> ? 2 : 1); ///< in a tile
  /// The columns behind V's. If they are bytes, a row has 64 of them without a swizzle.
  static constexpr int kRopeBytes =
      kKeepsBytes<Config> && !kHasScales<Config> ? kBlockBytes / 2 : kBlockBytes;
  static constexpr int kTileBytes = kRopeOffset + kRopeBytes;
  static constexpr int kQueryBlockBytes = kRows * 128;

  static constexpr int kQueryOffset = kSlots<Config> * kTileBytes;
  /// For few rows: data that the warpgroups leave for their own warps and for each other.
  static constexpr int kFewOffset = kQueryOffset + kBlocks * kQueryBlockBytes;
  static constexpr int kSlotOffset = kFewOffset + (kHasFewRows<Config> ? FewLayout<Config>::kBytes : 0);
  /// Slots for facts of tiles. For a cache of bytes, facts are written one tile ahead of the tile's slot.
  static constexpr int kFactSlots = kIsOfBytes<Config> ? 2 * kSlots<Config> : kSlots<Config>;
  static constexpr int kHeadOffset = kSlotOffset + kFactSlots * static_cast<int>(sizeof(TileSlot));
  /// The references of the rows' weights, for the tile in each slot.
  static constexpr int kReferenceOffset = kHeadOffset + 2 * static_cast<int>(sizeof(UnitHead<Config>));
  /// For each warpgroup, for this unit and the next.
  static constexpr int kShareOffset = kReferenceOffset + kSlots<Config> * kRows * 4;
  /// Four scales of each token in each slot, where rows have so many; others are read from memory.
  static constexpr int kScaleOffset =
      kShareOffset + 2 * kComputingGroups * kRows * static_cast<int>(sizeof(RowShare));
  static constexpr bool kKeepsScales = kHasScales<Config> && ByteRow<Config>::kScales == 4;
  static constexpr int kBarrierOffset =
      kScaleOffset + (kKeepsScales ? kSlots<Config> * Config::kTileKv * 16 : 0);
  /// The barriers of each slot and of the queries; then, if copies convert, one a slot and copying warp.
  static constexpr int kLandedBarriers = 5 * kSlots<Config> + 2;
  static constexpr int kBarriers =
      kLandedBarriers + (kCopiesConvert<Config> ? kSlots<Config> * kCopyingWarps<Config> : 0);
  static constexpr int kAlignment = 1024; ///< needed by the swizzle; the launch guarantees only 16
  static constexpr int kBytes = kBarrierOffset + kBarriers * 8 + kAlignment;

  /// The number by which the pieces of a token's bytes are swapped within a block of 128. Lanes read four
  /// pieces of each of two neighbouring tokens, or one of eight tokens, from different banks.
  static __device__ __forceinline__ int byteSwizzle(int token) { return token % 2 * 4 + token % 8 / 2; }
  /// The offset of a piece of 16 bytes in a tile of bytes.
  static __device__ __forceinline__ unsigned byteOffset(int token, int piece) {
    return static_cast<unsigned>(piece / 8 * kBlockBytes + token * 128 +
                                 (piece % 8 ^ byteSwizzle(token)) * 16);
  }
  /// The offset of a piece of 16 bytes in a row of a block of 64 columns, in the block, and in a tile.
  static __device__ __forceinline__ int swizzled(int row, int piece) { return (piece ^ (row & 7)) * 16; }
  static __device__ __forceinline__ unsigned pieceAt(int row, int piece) {
    return static_cast<unsigned>(row * 128 + swizzled(row, piece));
  }
  static __device__ __forceinline__ unsigned offset(int row, int column) {
    return static_cast<unsigned>(column / 8 * kBlockBytes) + pieceAt(row, column % 8);
  }
};

/// Dynamic shared memory of one block.
template <class Config> __host__ __device__ constexpr int smemBytes() {
  return Layout<Known<Config>>::kBytes;
}

template <class Config> __device__ __forceinline__ int tilesOf(const abi::Item &item) {
  return (item.tokens + Config::kTileKv - 1) / Config::kTileKv;
}

/// The block's shared memory. Steps count tiles over all units of the block; units are counted as well.
template <class Config> struct Ring {
  using L = Layout<Config>;
  unsigned base; ///< shared address
  char *shared;

  __device__ __forceinline__ unsigned tile(int step) const {
    return base + step % kSlots<Config> * L::kTileBytes;
  }
  __device__ __forceinline__ unsigned queries() const { return base + L::kQueryOffset; }
  __device__ __forceinline__ TileSlot &slot(int step) const {
    return reinterpret_cast<TileSlot *>(shared + L::kSlotOffset)[step % L::kFactSlots];
  }
  __device__ __forceinline__ UnitHead<Config> &head(int unit) const {
    return reinterpret_cast<UnitHead<Config> *>(shared + L::kHeadOffset)[unit % 2];
  }
  __device__ __forceinline__ float *references(int step) const {
    return reinterpret_cast<float *>(shared + L::kReferenceOffset) + step % kSlots<Config> * L::kRows;
  }
  __device__ __forceinline__ RowShare *shares(int unit, int group) const {
    return reinterpret_cast<RowShare *>(shared + L::kShareOffset) +
           (unit % 2 * kComputingGroups + group) * L::kRows;
  }

  // Barriers of a step. A part is full when its copies have landed. It is empty when each warp of its last
  // reader has arrived. Weights are ready when each warp that makes them has arrived.
  __device__ __forceinline__ unsigned full(int step, Part part) const {
    return barrier(step % kSlots<Config> * 5 + part);
  }
  __device__ __forceinline__ unsigned empty(int step, Part part) const {
    return barrier(step % kSlots<Config> * 5 + 2 + part);
  }
  __device__ __forceinline__ unsigned weights(int step) const {
    return barrier(step % kSlots<Config> * 5 + 4);
  }
  static __device__ __forceinline__ unsigned parity(int step) {
    return static_cast<unsigned>(step) / kSlots<Config> & 1;
  }
  __device__ __forceinline__ unsigned queriesFull() const { return barrier(5 * kSlots<Config>); }
  __device__ __forceinline__ unsigned queriesEmpty() const { return barrier(5 * kSlots<Config> + 1); }

  /// Shared address of the scales of a tile's tokens.
  __device__ __forceinline__ unsigned scales(int step) const {
    return L::kScaleOffset + step % kSlots<Config> * Config::kTileKv * 16;
  }
  /// Completes once the bytes of a copying warp's tokens have landed.
  __device__ __forceinline__ unsigned landed(int step, int warp) const {
    return barrier(L::kLandedBarriers + step % kSlots<Config> * kCopyingWarps<Config> + warp);
  }

  /// The memory of blocks for few rows.
  __device__ __forceinline__ unsigned few() const { return base + L::kFewOffset; }
  template <class T> __device__ __forceinline__ T *fewAt(int offset) const {
    return reinterpret_cast<T *>(shared + L::kFewOffset + offset);
  }

  /// Called by one thread, before the block's first barrier.
  __device__ __forceinline__ void init() const {
    if constexpr (kHasFewRows<Config>)
      for (int i = 0; i < kComputingGroups * 2; ++i)
        fewAt<int>(FewLayout<Config>::kGrowthOffset)[i] = -1;
    for (int slot = 0; slot < kSlots<Config>; ++slot) {
      constexpr int kWarps = kCopyingWarps<Config>;
      // The lanes whose copies fill a part, and one more for the tile's facts. If copies convert: each warp
      // once it has converted, and its copies of the last block. If tiles keep bytes: all copies, and each
      // warp for the facts.
      ptx::mbarrierInit(full(slot, kOwn), kCopiesConvert<Config> ? kWarps
                                          : kKeepsBytes<Config>  ? 32 * kWarps
                                                                 : 32);
      ptx::mbarrierInit(full(slot, kOther), kCopiesConvert<Config> ? 33 * kWarps
                                            : kKeepsBytes<Config>  ? kWarps
                                                                   : 33);
      if constexpr (kCopiesConvert<Config>) {
        for (int warp = 0; warp < kWarps; ++warp)
          ptx::mbarrierInit(landed(slot, warp), 32);
      }
      ptx::mbarrierInit(empty(slot, kOwn), 4);
      ptx::mbarrierInit(empty(slot, kOther), 4);
      ptx::mbarrierInit(weights(slot), 4);
    }
    ptx::mbarrierInit(queriesFull(), kCopyingWarps<Config> * (32 + 1));
    ptx::mbarrierInit(queriesEmpty(), 4 * kComputingGroups);
    ptx::mbarrierInitFence();
  }

private:
  __device__ __forceinline__ unsigned barrier(int number) const {
    return base + L::kBarrierOffset + number * 8;
  }
};

} // namespace deft::sm90_latent
