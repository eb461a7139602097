#pragma once

#include "deft/common/latent_bytes.cuh"
#include "deft/common/warp_rows.cuh"
#include "deft/sm80/shared_layout.cuh"
#include "deft/sm80_latent/shares.cuh"

/// How a block of the sm80_latent family lays out its shared memory. The host's twin is
/// compiler/kernels/Sm80Latent.cpp; every generated file asserts that both agree.
namespace deft::sm80_latent {

/// Rows as in family sm80, of whose columns a warp reads those that are kStride apart.
template <class Element, int kDim> struct StridedRows : sm80::RowLayout<Element, kDim> {
  using Rows = sm80::RowLayout<Element, kDim>;

  /// Of column `first + k * kStride`. The swizzle is the same every eight columns, so what depends on the row
  /// is a few numbers, and the rest is a constant.
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
  /// Of a cache of bytes the ring has rows as they are stored, and behind it is one tile of converted ones.
  static constexpr bool kConverts = kIsOfBytes<Config>;
  static constexpr int kSlotBytes = kConverts ? Config::kTileKv * ByteRow<Config>::kBytes : kTileBytes;
  static constexpr int kConvertedOffset = Config::kStages * kSlotBytes;
  static constexpr int kQueryOffset = kConvertedOffset + (kConverts ? kTileBytes : 0);
  static constexpr int kQueryBytes = kHasQueries ? Config::kTileQ * QueryRows::kRowBytes : 0;

  /// Ring and queries are used again, at the end of a unit, for results on their way out.
  static constexpr int kResultStride = Config::kValueDim * 2 + 16;
  static constexpr int kResultBytes = Config::kTileQ * kResultStride;

  /// Parts of products that the warps of the same rows add up: of each warp 16 bytes a lane and 8 tokens.
  static constexpr int kPartOffset =
      kQueryOffset + kQueryBytes > kResultBytes ? kQueryOffset + kQueryBytes : kResultBytes;
  static constexpr int kPartOfWarp = Config::kTileKv / 8 * 512;
  static constexpr int kPartBytes = Split::kSharers > 1 ? Config::kWarps *kPartOfWarp : 0;

  static constexpr int kTokenOffset = kPartOffset + kPartBytes;
  static constexpr int kRecordOffset = kTokenOffset + kTokens * 8;
  static constexpr int kBytes = kRecordOffset + kTokens * TokenBytes<Config>::kRecord;
};

/// A tile's tokens in shared memory: where each lies, and its records.
template <class Config> struct TokenSlot {
  uint2 *place; ///< where the token's latent columns begin, and its others
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
