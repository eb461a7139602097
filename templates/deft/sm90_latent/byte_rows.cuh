#pragma once

#include "deft/common/latent_bytes.cuh"
#include "deft/common/row_place.cuh"
#include "deft/ptx/cp_async.cuh"
#include "deft/ptx/load_float_now.cuh"
#include "deft/sm90_latent/layout.cuh"

/// How a copying warp brings its 16 tokens of a tile from a cache of bytes. They land in the tile itself: V's
/// columns of a token as bytes fill just the half of its row that is part kOwn, and nothing else lies there.
/// Four tokens at a time then come to registers and go back as q's elements, over all blocks. So what waits
/// for memory is a slot, not registers, and nothing is staged elsewhere, for which two tiles leave no room.
namespace deft::sm90_latent {

/// Where a lane's token of a tile lies: its row, and the columns behind V's where these are bytes, too. Lanes
/// from ByteRows::firstLane() on have the warp's.
struct BytePlace {
  unsigned row, rope;
};

template <class Config> class ByteRows {
  using L = Layout<Config>;
  using Factor = typename Config::Key;
  static constexpr int kPieceBytes = 16;
  static constexpr int kPieces = Config::kValueDim / kPieceBytes; ///< of a token
  static constexpr int kTokensOfCopy = 32 / kPieces;              ///< that all lanes copy at once
  static constexpr bool kIsScaled = kHasScales<Config>;
  static constexpr int kScaleColumns = kIsScaled ? kScaleColumnsOf<Config> : Config::kValueDim;
  static constexpr int kScales = Config::kValueDim / kScaleColumns; ///< of a token
  /// Whether all columns of a block share a scale. Lanes then hold those of all tokens: of a token, two lanes
  /// have every other one.
  static constexpr bool kHoldsScales = kIsScaled && kScaleColumns % 64 == 0;
  static constexpr int kHeld = kHoldsScales ? kScales / 2 : 1;
  static_assert(kScaleColumns % kPieceBytes == 0, "a piece has one scale");

public:
  static constexpr int kTokens = 16; ///< of a warp in a tile
  static constexpr int kGroup = 4;   ///< tokens that registers hold, and that are copied together
  static constexpr int kGroups = kTokens / kGroup;

  __device__ __forceinline__ ByteRows(const abi::AttendArgs &args, const Ring<Config> &ring, int warp,
                                      int lane)
      : args_(args), ring_(ring), warp_(warp), lane_(lane) {}

  /// The byte of a tensor at a place.
  static __device__ __forceinline__ const char *rowAt(const void *from, unsigned place) {
    return atPlace<Config, Stored<Config>>(static_cast<const char *>(from), place);
  }
  /// A lane has a token of each half of a tile; the warp's 16 are those of lanes from here on.
  __device__ __forceinline__ int firstLane() const { return warp_ % 2 * kTokens; }

  /// V's columns of the warp's tokens are on their way then, as kGroups groups of copies: a token's row by
  /// neighbouring lanes, so that its lines are asked for once.
  __device__ __forceinline__ void start(const BytePlace &place, int step) const {
    constexpr bool kAreAllLanes = kTokensOfCopy * kPieces == 32;
    const int piece = lane_ % kPieces, own = kTokensOfCopy > 1 ? numberOf(0, lane_ / kPieces) : 0;
    const char *const from = static_cast<const char *>(args_.k) + piece * kPieceBytes;
    const unsigned to =
        (ring_.tile(step) + landing(step) + piece / 8 * kBlockBytes + piece % 8 * 16) ^ atToken(own);
#pragma unroll 1
    for (int group = 0; group < kGroups; ++group) {
#pragma unroll
      for (int i = 0; i < kGroup; i += kTokensOfCopy) {
        const int token = numberOf(group, i) ^ own; // of eight
        const unsigned row = __shfl_sync(~0u, place.row, firstLane() + group / 2 * 8 + token);
        if (kAreAllLanes || lane_ < kPieces)
          ptx::cpAsync16((to ^ atToken(numberOf(group, i))) + group / 2 * kEightRows, rowAt(from, row));
      }
      ptx::cpAsyncCommit();
    }
  }

  /// The columns behind V's where these are bytes: to the second half of their rows in the last block.
  __device__ __forceinline__ void startRope(const BytePlace &place, int step) const {
#pragma unroll
    for (int eight = 0; eight < kTokens; eight += 8) {
      const unsigned row = __shfl_sync(~0u, place.rope, firstLane() + eight + ropeToken());
      ptx::cpAsync16(ring_.tile(step) + L::kRopeOffset + ropeRow(eight) + ropeBytes(),
                     rowAt(args_.v, row) + lane_ % 4 * kPieceBytes);
    }
  }

  /// Asks for the scales of the warp's tokens.
  __device__ __forceinline__ void loadScales(const BytePlace &place) {
    if constexpr (kHoldsScales) {
      const unsigned row = __shfl_sync(~0u, place.row, firstLane() + lane_ / 2);
      const float *const first = &scaleOf<Config>(rowAt(args_.k, row), 0) + lane_ % 2;
#pragma unroll
      for (int i = 0; i < kHeld; ++i)
        held_[i] = ptx::loadNow(first + 2 * i);
    }
  }

  /// A group that has landed, of a tile whose scales have been asked for.
  __device__ __forceinline__ void convert(const BytePlace &place, int step, int group) const {
    const int token = tokenOf(group), piece = lane_ % 4, odd = lane_ / 8 % 2;
    char *const tile = ring_.shared + (ring_.tile(step) - ring_.base) + group / 2 * kEightRows + token * 128;
    const char *const from = tile + landing(step) + ((odd * 4 + piece) ^ token) * 16;
    uint4 bytes[L::kHalfBlocks];
#pragma unroll
    for (int i = 0; i < L::kHalfBlocks; ++i)
      bytes[i] = *reinterpret_cast<const uint4 *>(from + i * kBlockBytes);
    float scale[L::kHalfBlocks];
    findScales(place, group, scale);
    __syncwarp(); // rows are written where others have been read
    char *const to = tile + warp_ * kTokens * 128 + odd * kBlockBytes;
#pragma unroll
    for (int i = 0; i < L::kHalfBlocks; ++i)
      write<kIsScaled>(to + 2 * i * kBlockBytes, token, bytes[i], scale[i]);
  }

  /// The same of what startRope() has brought, for all tokens of the warp.
  __device__ __forceinline__ void convertRope(int step) const {
    char *const block = ring_.shared + (ring_.tile(step) - ring_.base) + L::kRopeOffset;
    uint4 bytes[kTokens / 8];
#pragma unroll
    for (int eight = 0; eight < kTokens; eight += 8)
      bytes[eight / 8] = *reinterpret_cast<const uint4 *>(block + ropeRow(eight) + ropeBytes());
    __syncwarp();
#pragma unroll
    for (int eight = 0; eight < kTokens; eight += 8)
      write<false>(block + ropeRow(eight), ropeToken(), bytes[eight / 8], 1.f);
  }

private:
  static constexpr int kEightRows = 8 * 128; ///< of a block

  // A group has four of eight tokens, as two pairs whose numbers differ in their first and third bits. Eight
  // lanes have four pieces of the two tokens of a pair: the swizzle then moves apart both the bytes that they
  // read and the elements that they write.
  static __device__ __forceinline__ int numberOf(int group, int i) {
    return (i / 2 * 2 + group % 2) ^ i % 2 * 5;
  }
  __device__ __forceinline__ int tokenOf(int group) const {
    return (lane_ / 16 * 2 + group % 2) ^ lane_ / 4 % 2 * 5;
  }
  /// What a token of eight changes in the address of a piece of the first (Layout::offset).
  static __device__ __forceinline__ unsigned atToken(int token) {
    return static_cast<unsigned>(token * (128 + 16));
  }

  /// In a tile: the warp's rows of the blocks that bytes land in. That half of V's columns is free first.
  __device__ __forceinline__ unsigned landing(int step) const {
    return static_cast<unsigned>(step % kSlots * L::kHalfBlocks * kBlockBytes + warp_ * kTokens * 128);
  }

  // Behind V's columns a lane has one of four pieces of eight tokens.
  __device__ __forceinline__ int ropeToken() const { return lane_ / 8 ^ lane_ / 4 % 2 * 5; }
  __device__ __forceinline__ unsigned ropeRow(int eight) const {
    return static_cast<unsigned>((warp_ * kTokens + eight + ropeToken()) * 128);
  }
  __device__ __forceinline__ unsigned ropeBytes() const {
    return static_cast<unsigned>(((4 + lane_ % 4) ^ ropeToken()) * 16);
  }

  /// Of each of a lane's pieces of its token. Where lanes do not hold them, they are loaded here.
  __device__ __forceinline__ void findScales(const BytePlace &place, int group,
                                             float (&scale)[L::kHalfBlocks]) const {
    const int token = group / 2 * 8 + tokenOf(group), column = lane_ / 8 % 2 * 64 + lane_ % 4 * kPieceBytes;
    if constexpr (kHoldsScales) {
#pragma unroll
      for (int i = 0; i < L::kHalfBlocks; ++i)
        scale[i] = __shfl_sync(~0u, held_[i * 128 / kScaleColumns / 2],
                               2 * token + (i * 128 + column) / kScaleColumns % 2);
    } else if constexpr (kIsScaled) {
      const char *const row = rowAt(args_.k, __shfl_sync(~0u, place.row, firstLane() + token));
#pragma unroll
      for (int i = 0; i < L::kHalfBlocks; ++i)
        scale[i] = ptx::loadNow(&scaleOf<Config>(row, i * 128 + column));
    }
  }

  /// To the row of a token in a block.
  template <bool kScalesThem>
  __device__ __forceinline__ void write(char *row, int token, const uint4 &bytes, float scale) const {
    const int piece = 2 * (lane_ % 4) ^ token % 8;
    *reinterpret_cast<uint4 *>(row + piece * 16) =
        factorsOf<Stored<Config>, Factor, kScalesThem>(bytes.x, bytes.y, scale);
    *reinterpret_cast<uint4 *>(row + (piece ^ 1) * 16) =
        factorsOf<Stored<Config>, Factor, kScalesThem>(bytes.z, bytes.w, scale);
  }

  const abi::AttendArgs &args_;
  const Ring<Config> &ring_;
  const int warp_, lane_;
  float held_[kHeld] = {};
};

} // namespace deft::sm90_latent
