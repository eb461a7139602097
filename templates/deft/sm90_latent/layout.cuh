#pragma once

#include "deft/common/latent_bytes.cuh"
#include "deft/ptx/mbarrier.cuh"
#include "deft/sm90/tile_slot.cuh"

/// How a block of the sm90_latent family lays out its shared memory. The host's twin is
/// compiler/kernels/Sm90Latent.cpp; every generated file asserts that both agree.
namespace deft::sm90_latent {

using sm90::TileFacts;
using sm90::TileSlot;

/// A config that says what sm90's parts ask for: no tokens are dealt to warps.
template <class Config> struct Undealt : Config {
  static constexpr bool kIsDealt = false;
};
/// As the kernel knows it: a cache of bytes has become one of q's elements where tiles are.
template <class Config> using Known = Multiplied<Undealt<Config>>;

constexpr int kRows = 64;             ///< of a unit's queries: each warp of a warpgroup has 16 of them
constexpr int kComputingGroups = 2;   ///< warpgroups
constexpr int kSlots = 2;             ///< for tiles; warpgroup g makes the weights of the tiles in slot g
constexpr int kBlockBytes = 64 * 128; ///< of 64 rows and 64 columns

/// What the computing warps want to know of a unit. There is one for this unit and one for the next.
struct alignas(16) UnitHead {
  abi::Item item;
  int callerIndex[kRows];
  int queryPos[kRows]; ///< where hooks ask for it
  int endStep;         ///< behind its last tile; where it has none, there is no unit left
  int heads;           ///< which group of query heads
};

/// What a warpgroup knows of a row's weights, those of its own tiles.
struct alignas(8) RowShare {
  float reference, sum;
};

/// Tiles and queries are stored in blocks of 64 rows and 64 columns, whose rows are the 128 bytes of wgmma's
/// widest swizzle. The blocks of V's columns come first, then that of the others (the rotated ones).
///
/// Each warpgroup has all rows and half of V's columns. A slot is given back in two parts, since the half of
/// the warpgroup that makes a tile's weights is done with sooner: part kOwn is that half. Part kOther is the
/// other half, and the last block, in which the weights stand for the other warpgroup once it has been read.
enum Part { kOwn = 0, kOther = 1 };

template <class Config> struct Layout {
  static constexpr int kBlocks = Config::kKeyDim / 64;
  static constexpr int kValueBlocks = Config::kValueDim / 64;
  static constexpr int kHalfBlocks = kValueBlocks / 2;
  static_assert(Config::kKeyDim % 64 == 0 && Config::kValueDim % 128 == 0 && kBlocks == kValueBlocks + 1);
  static_assert(sizeof(typename Config::Key) == 2 && kIsSame<typename Config::Key, typename Config::Value> &&
                kIsSame<typename Config::Key, typename Config::Query>);
  static_assert(Config::kTileQ == kRows && Config::kTileKv == 64 && Config::kStages == kSlots &&
                Config::kWarps == 4 * (1 + kComputingGroups) && Config::kRatio <= kRows);
  static constexpr int kTileBytes = kBlocks * kBlockBytes;
  static constexpr int kRopeOffset = kValueBlocks * kBlockBytes; ///< of the last block, in a tile

  static constexpr int kQueryOffset = kSlots * kTileBytes;
  static constexpr int kSlotOffset = kQueryOffset + kTileBytes;
  /// For facts of tiles. Of a cache of bytes they are written a tile ahead of its slot.
  static constexpr int kFactSlots = kIsOfBytes<Config> ? 2 * kSlots : kSlots;
  static constexpr int kHeadOffset = kSlotOffset + kFactSlots * static_cast<int>(sizeof(TileSlot));
  /// References of the rows' weights in each slot's tile.
  static constexpr int kReferenceOffset = kHeadOffset + 2 * static_cast<int>(sizeof(UnitHead));
  /// Of each warpgroup, for this unit and for the next one.
  static constexpr int kShareOffset = kReferenceOffset + kSlots * kRows * 4;
  static constexpr int kBarrierOffset =
      kShareOffset + 2 * kComputingGroups * kRows * static_cast<int>(sizeof(RowShare));
  static constexpr int kBarriers = 5 * kSlots + 2;
  static constexpr int kAlignment = 1024; ///< of the swizzle; the launch gives 16
  static constexpr int kBytes = kBarrierOffset + kBarriers * 8 + kAlignment;

  static __device__ __forceinline__ unsigned offset(int row, int column) {
    return static_cast<unsigned>(column / 8 * kBlockBytes + row * 128 + ((column % 8) ^ (row & 7)) * 16);
  }
};

/// Dynamic shared memory of one block.
template <class Config> __host__ __device__ constexpr int smemBytes() {
  return Layout<Known<Config>>::kBytes;
}

template <class Config> __device__ __forceinline__ int tilesOf(const abi::Item &item) {
  return (item.tokens + Config::kTileKv - 1) / Config::kTileKv;
}

/// The block's shared memory. Steps count tiles over all units of the block, and units are counted, too.
template <class Config> struct Ring {
  using L = Layout<Config>;
  unsigned base; ///< shared address
  char *shared;

  __device__ __forceinline__ unsigned tile(int step) const { return base + step % kSlots * L::kTileBytes; }
  __device__ __forceinline__ unsigned queries() const { return base + L::kQueryOffset; }
  __device__ __forceinline__ TileSlot &slot(int step) const {
    return reinterpret_cast<TileSlot *>(shared + L::kSlotOffset)[step % L::kFactSlots];
  }
  __device__ __forceinline__ UnitHead &head(int unit) const {
    return reinterpret_cast<UnitHead *>(shared + L::kHeadOffset)[unit % 2];
  }
  __device__ __forceinline__ float *references(int step) const {
    return reinterpret_cast<float *>(shared + L::kReferenceOffset) + step % kSlots * kRows;
  }
  __device__ __forceinline__ RowShare *shares(int unit, int group) const {
    return reinterpret_cast<RowShare *>(shared + L::kShareOffset) +
           (unit % 2 * kComputingGroups + group) * kRows;
  }

  // Barriers of a step: a part is full when its copies have landed, and empty when each warp of the warpgroup
  // that reads it last has arrived; weights are there when each warp that makes them has.
  __device__ __forceinline__ unsigned full(int step, Part part) const {
    return barrier(step % kSlots * 5 + part);
  }
  __device__ __forceinline__ unsigned empty(int step, Part part) const {
    return barrier(step % kSlots * 5 + 2 + part);
  }
  __device__ __forceinline__ unsigned weights(int step) const { return barrier(step % kSlots * 5 + 4); }
  static __device__ __forceinline__ unsigned parity(int step) {
    return static_cast<unsigned>(step) / kSlots & 1;
  }
  __device__ __forceinline__ unsigned queriesFull() const { return barrier(5 * kSlots); }
  __device__ __forceinline__ unsigned queriesEmpty() const { return barrier(5 * kSlots + 1); }

  /// By one thread, before the block's first barrier.
  __device__ __forceinline__ void init() const {
    for (int slot = 0; slot < kSlots; ++slot) {
      // Threads that fill a part: of a cache of bytes, those of two warps, and the last block's.
      constexpr bool kConverts = kIsOfBytes<Config>;
      ptx::mbarrierInit(full(slot, kOwn), kConverts ? 2 * 32 : 32);
      ptx::mbarrierInit(full(slot, kOther), (kConverts ? 4 * 32 : 32) + 1); // and one for the tile's facts
      ptx::mbarrierInit(empty(slot, kOwn), 4);
      ptx::mbarrierInit(empty(slot, kOther), 4);
      ptx::mbarrierInit(weights(slot), 4);
    }
    ptx::mbarrierInit(queriesFull(), 4 * (32 + 1));
    ptx::mbarrierInit(queriesEmpty(), 4 * kComputingGroups);
    ptx::mbarrierInitFence();
  }

private:
  __device__ __forceinline__ unsigned barrier(int number) const {
    return base + L::kBarrierOffset + number * 8;
  }
};

} // namespace deft::sm90_latent
