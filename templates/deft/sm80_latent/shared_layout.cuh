#pragma once

#include "deft/common/latent_bytes.cuh"
#include "deft/common/warp_rows.cuh"
#include "deft/sm80/shared_layout.cuh"
#include "deft/sm80_latent/shares.cuh"

/// The layout of a block's shared memory in the sm80_latent family. The host's counterpart is
/// compiler/kernels/Sm80Latent.cpp; every generated file asserts that both agree.
namespace deft::sm80_latent {

/// Rows of family sm80; a warp reads every kStride-th column.
template <class Element, int kDim> struct StridedRows : sm80::RowLayout<Element, kDim> {
  using Rows = sm80::RowLayout<Element, kDim>;

  /// The offset of column `first + k * kStride`. The swizzle repeats every eight columns, so only a few
  /// values depend on the row, and the rest is a constant.
  template <int kStride> static __device__ __forceinline__ unsigned offset(int row, int first, int k) {
    constexpr int kPeriod = kStride % 8 == 0 ? 1 : kStride % 4 == 0 ? 2 : kStride % 2 == 0 ? 4 : 8;
    return Rows::offset(row, first + k % kPeriod * kStride) +
           static_cast<unsigned>(k / kPeriod * kPeriod * kStride * 16);
  }
};

template <class Config> struct SharedLayout {
  using Split = Shares<Config>;
  using KeyRows = StridedRows<typename Config::Key, Config::kKeyDim>; ///< and values
  static constexpr int kQueryDims = Config::kKeyDim - Split::kDimsHeld;
  static constexpr bool kHasQueries = kQueryDims > 0; ///< some are not held in registers
  using QueryRows = StridedRows<typename Config::Query, kHasQueries ? kQueryDims : 16>;

  /// A tile's token records are written one step before its copies start, so they need one more slot.
  static constexpr int kTokenSlots = Config::kStages + 1;
  static constexpr int kTokens = kTokenSlots * Config::kTileKv;

  static constexpr int kTileBytes = Config::kTileKv * KeyRows::kRowBytes;
  /// For a cache of bytes, the ring holds stored rows; one tile of converted rows follows it.
  static constexpr bool kConverts = kIsOfBytes<Config>;
  static constexpr int kSlotBytes = kConverts ? Config::kTileKv * ByteRow<Config>::kBytes : kTileBytes;
  static constexpr int kConvertedOffset = Config::kStages * kSlotBytes;
  static constexpr int kQueryOffset = kConvertedOffset + (kConverts ? kTileBytes : 0);
  static constexpr int kQueryBytes = kHasQueries ? Config::kTileQ * QueryRows::kRowBytes : 0;

  /// At the end of a unit, the memory of ring and queries serves for results.
  static constexpr int kResultStride = Config::kValueDim * 2 + 16;
  static constexpr int kResultBytes = Config::kTileQ * kResultStride;

  /// Partial products that the warps of the same rows add up: for each warp, 16 bytes per lane and 8 tokens.
  static constexpr int kPartOffset =
      kQueryOffset + kQueryBytes > kResultBytes ? kQueryOffset + kQueryBytes : kResultBytes;
  static constexpr int kPartOfWarp = Config::kTileKv / 8 * 512;
  static constexpr int kPartBytes = Split::kSharers > 1 ? Config::kWarps *kPartOfWarp : 0;

  static constexpr int kTokenOffset = kPartOffset + kPartBytes;
  static constexpr int kRecordOffset = kTokenOffset + kTokens * 8;
  static constexpr int kBytes = kRecordOffset + kTokens * TokenBytes<Config>::kRecord;
};

/// A tile's tokens in shared memory: their places and their records.
template <class Config> struct TokenSlot {
  uint2 *place; ///< the places of the token's latent and other columns
  TokenRecords records;

  __device__ __forceinline__ TokenSlot(char *shared, int slot)
      : place(reinterpret_cast<uint2 *>(shared + SharedLayout<Config>::kTokenOffset) +
              slot * Config::kTileKv),
        records(shared + SharedLayout<Config>::kRecordOffset +
                    slot * Config::kTileKv * TokenBytes<Config>::kRecord,
                Config::kTileKv) {}
};

/// Dynamic shared memory of one block.
template <class Config> __host__ __device__ constexpr int smemBytes() {
  return SharedLayout<Multiplied<Config>>::kBytes;
}

} // namespace deft::sm80_latent
