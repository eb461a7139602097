#pragma once

#include "deft/common/warp_rows.cuh"

/// The layout of a block's shared memory in the sm80 family. The host's counterpart is
/// compiler/kernels/Sm80.cpp; every generated file asserts that both agree.
namespace deft::sm80 {

/// Rows of `kDim` elements that ldmatrix reads without bank conflicts: eight consecutive rows must use eight
/// different 16-byte columns of the 128-byte bank line. If a row is a multiple of 128 bytes, its columns are
/// swizzled by the row. Otherwise the row is padded to an odd number of columns, which costs one column and
/// no arithmetic.
template <class Element, int kDim> struct RowLayout {
  static constexpr int kColumns = kDim * static_cast<int>(sizeof(Element)) / 16;
  static constexpr bool kSwizzled = kColumns % 8 == 0;
  static constexpr int kStride = kSwizzled ? kColumns : kColumns | 1;
  static constexpr int kRowBytes = kStride * 16;

  static __device__ __forceinline__ unsigned offset(int row, int column) {
    return static_cast<unsigned>(row * kRowBytes + (kSwizzled ? column ^ (row & 7) : column) * 16);
  }
};

template <class Config> struct SharedLayout {
  using KeyRows = RowLayout<typename Config::Key, Config::kKeyDim>;
  using ValueRows = RowLayout<typename Config::Value, Config::kValueDim>;
  using QueryRows = RowLayout<typename Config::Query, Config::kKeyDim>;

  /// Queries are in registers as long as the accumulators have room.
  static constexpr bool kQueryInRegisters = Config::kKeyDim <= 128;

  /// A tile's token records are written one step before its copies start, so they need one more slot.
  static constexpr int kTokenSlots = Config::kStages + 1;
  static constexpr int kTokens = kTokenSlots * Config::kTileKv;

  static constexpr int kKeyTileBytes = Config::kTileKv * KeyRows::kRowBytes;
  static constexpr int kValueTileBytes = Config::kTileKv * ValueRows::kRowBytes;
  static constexpr int kValueOffset = Config::kStages * kKeyTileBytes;
  static constexpr int kRingBytes = kValueOffset + Config::kStages * kValueTileBytes;

  /// At the end of a unit, the ring's memory serves to join the warps' accumulators.
  static constexpr int kJoinStride = Config::kValueDim + 4;
  static constexpr int kJoinBytes = Config::kWarps * 16 * (kJoinStride + 2) * 4;

  static constexpr int kQueryOffset = kRingBytes > kJoinBytes ? kRingBytes : kJoinBytes;
  static constexpr int kQueryBytes = kQueryInRegisters ? 0 : Config::kTileQ * QueryRows::kRowBytes;
  /// For queries that are fitted for products with converted keys: the inverse factor of each row.
  static constexpr int kUnitOffset = kQueryOffset + kQueryBytes;
  static constexpr int kUnitBytes =
      kQueryInRegisters || !kIsConverted<typename Config::Key> ? 0 : Config::kTileQ * 4;
  static constexpr int kTokenOffset = kUnitOffset + kUnitBytes;
  static constexpr int kRecordOffset = kTokenOffset + kTokens * 8;
  static constexpr int kBytes = kRecordOffset + kTokens * TokenBytes<Config>::kRecord;
};

/// Dynamic shared memory of one block.
template <class Config> __host__ __device__ constexpr int smemBytes() { return SharedLayout<Config>::kBytes; }

} // namespace deft::sm80
