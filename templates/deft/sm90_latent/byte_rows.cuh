#pragma once

#include "deft/common/latent_bytes.cuh"
#include "deft/common/row_place.cuh"
#include "deft/ptx/cp_async.cuh"
#include "deft/ptx/load_float_now.cuh"
#include "deft/sm90_latent/layout.cuh"

/// A copying warp's tokens of a tile, from a cache of bytes. Tiles for few rows keep the bytes. Other tiles
/// have q's elements, and the bytes land in the tile itself: V's columns of a token fill exactly the half of
/// its row that is part kOwn. The warp then reads four tokens at a time into registers and writes them back
/// as q's elements, over all blocks. So slots wait for memory, not registers, and there is no staging buffer:
/// two tiles leave no room for one.
namespace deft::sm90_latent {

/// Where a lane's token of a tile lies: its row, and its columns behind V's if they are bytes as well. The
/// warp's tokens are in the lanes from ByteRows::firstLane() on.
struct BytePlace {
  unsigned row, rope;
};

template <class Config> class ByteRows {
  using L = Layout<Config>;
  static constexpr int kPieceBytes = 16;
  static constexpr int kPieces = Config::kValueDim / kPieceBytes; ///< of a token
  static constexpr int kTokensOfCopy = 32 / kPieces;              ///< that all lanes copy at once
  static constexpr bool kIsScaled = kHasScales<Config>;
  static constexpr int kScaleColumns = kIsScaled ? kScaleColumnsOf<Config> : Config::kValueDim;
  static_assert(kScaleColumns % kPieceBytes == 0, "a piece has one scale");
  static_assert(kRowUnit<Config> * sizeof(Stored<Config>) == kPieceBytes, "places count pieces");

public:
  static constexpr int kTokens = Config::kTileKv / kCopyingWarps<Config>; ///< of a warp in a tile

  __device__ __forceinline__ ByteRows(const abi::AttendArgs &args, const Ring<Config> &ring, int warp,
                                      int lane)
      : args_(args), ring_(ring), warp_(warp), lane_(lane) {}

  /// The byte of a tensor at a place.
  static __device__ __forceinline__ const char *rowAt(const void *from, unsigned place) {
    return atPlace<Config, Stored<Config>>(static_cast<const char *>(from), place);
  }
  /// A lane has a token of each half of a tile. The warp's tokens begin at this lane.
  __device__ __forceinline__ int firstLane() const { return warp_ * kTokens % 32; }

  /// Starts the copies of V's columns and scales of the warp's tokens; neighbouring lanes copy one token's
  /// row. Rows begin anywhere in a line of memory. Eight lanes take the pieces of one line: those of two
  /// lines would take three passes of shared memory instead of one.
  __device__ __forceinline__ void start(const BytePlace &place, int step) const {
    const int own = kTokensOfCopy > 1 ? lane_ / kPieces : 0;
    const char *const first = static_cast<const char *>(args_.k);
    const unsigned lane = lane_ % kPieces, line = pieceOf(first); // of the first row's begin
    const unsigned to = ring_.base + landing(step) + static_cast<unsigned>(warp_ * kTokens * 128);
#pragma unroll
    for (int token = 0; token < kTokens; token += kTokensOfCopy) {
      const unsigned row = __shfl_sync(~0u, place.row, firstLane() + token + own);
      const unsigned ahead = lane - (line + row) % 8; // perhaps below 0
      const unsigned piece = kPieces == 32 ? ahead % 32 : min(ahead, ahead + kPieces);
      const unsigned at = piece * (kBlockBytes / 8 + kPieceBytes) &
                          (3 * kBlockBytes + 7 * kPieceBytes); // its block and place
      if (kTokensOfCopy * kPieces == 32 || lane_ < kPieces)
        ptx::cpAsync16(to + (at ^ atToken((token + own) % 8)) + token / 8 * kEightRows,
                       rowAt(first, row + piece));
    }
    if constexpr (L::kKeepsScales) {
      const unsigned row = __shfl_sync(~0u, place.row, firstLane() + lane_ % kTokens);
      if (lane_ < kTokens)
        ptx::cpAsync16(ring_.base + ring_.scales(step) + (warp_ * kTokens + lane_) * 16,
                       rowAt(args_.k, row) + Config::kValueDim);
    }
  }

  /// Starts the copies of the columns behind V's, if they are bytes that the tile keeps.
  __device__ __forceinline__ void startRopeBytes(const BytePlace &place, int step) const {
#pragma unroll
    for (int token = lane_ / 4; token < kTokens; token += 8) {
      const unsigned row = __shfl_sync(~0u, place.rope, firstLane() + token);
      ptx::cpAsync16(ring_.tile(step) + L::kRopeOffset + (warp_ * kTokens + token) * 64 +
                         lane_ % 4 * kPieceBytes,
                     rowAt(args_.v, row) + lane_ % 4 * kPieceBytes);
    }
  }

  /// Starts the copies of the columns behind V's, if they are bytes, to the second half of their rows in the
  /// last block. The thread waits for them with cpAsyncWait.
  __device__ __forceinline__ void startRope(const BytePlace &place, int step) const {
#pragma unroll
    for (int eight = 0; eight < kTokens; eight += 8) {
      const unsigned row = __shfl_sync(~0u, place.rope, firstLane() + eight + ropeToken());
      ptx::cpAsync16(ring_.tile(step) + L::kRopeOffset + ropeRow(eight) + ropeBytes(),
                     rowAt(args_.v, row) + lane_ % 4 * kPieceBytes);
    }
  }

  /// Converts the tile's bytes. They have landed, and both parts of the slot are free.
  __device__ __forceinline__ void convert(const BytePlace &place, int step) const {
    const unsigned from = landing(step) + (ownRow() ^ (odd() * 4 + lane_ % 4) * 16), to = firstElement(step);
#pragma unroll 1
    for (int eight = 0; eight < kTokens / 8; ++eight)
#pragma unroll
      for (int other = 0; other < 2; ++other) {
        char *const rows = ring_.shared + eight * kEightRows;
        const char *const bytes = rows + (from ^ atToken(other));
        uint4 pieces[L::kHalfBlocks];
        float scales[L::kHalfBlocks] = {};
#pragma unroll
        for (int i = 0; i < L::kHalfBlocks; ++i)
          pieces[i] = *reinterpret_cast<const uint4 *>(bytes + i * kBlockBytes);
        if constexpr (kIsScaled)
          findScales(place, step, eight * 8 + (ownToken() ^ other), scales);
        __syncwarp(); // lanes write over bytes that other lanes have read
        char *const first = rows + (to ^ atToken(other)), *const second = rows + (to ^ atToken(other) ^ 16);
#pragma unroll
        for (int i = 0; i < L::kHalfBlocks; ++i)
          write<Latent<Config>, kIsScaled>(first + 2 * i * kBlockBytes, second + 2 * i * kBlockBytes,
                                           pieces[i], scales[i]);
      }
  }

  /// Converts the bytes of startRope().
  __device__ __forceinline__ void convertRope(int step) const {
    char *const block = ring_.shared + slot(step) + L::kRopeOffset;
    uint4 bytes[kTokens / 8];
#pragma unroll
    for (int eight = 0; eight < kTokens; eight += 8)
      bytes[eight / 8] = *reinterpret_cast<const uint4 *>(block + ropeRow(eight) + ropeBytes());
    __syncwarp();
#pragma unroll
    for (int eight = 0; eight < kTokens; eight += 8)
      writeRope(block, eight, bytes[eight / 8]);
  }

private:
  static constexpr int kEightRows = 8 * 128; ///< of a block

  // Lanes have four pieces, one of every other block, of four of eight tokens, and then of the other four.
  // Eight lanes have two tokens, whose numbers differ in their first and third bits. So the swizzle puts the
  // bytes that these lanes read into different banks, and the elements that they write as well.
  static __device__ __forceinline__ int numberOf(int token, int other) { return token ^ other * 5; }
  __device__ __forceinline__ int odd() const { return lane_ / 8 % 2; }
  __device__ __forceinline__ int ownToken() const { return numberOf(lane_ / 16 * 2, lane_ / 4 % 2); }
  /// The row of the lane's first token in a block, with its swizzle.
  __device__ __forceinline__ unsigned ownRow() const {
    return static_cast<unsigned>(warp_ * kTokens * 128) ^ atToken(ownToken());
  }
  /// The offset of the lane's first element in a tile.
  __device__ __forceinline__ unsigned firstElement(int step) const {
    return slot(step) + odd() * kBlockBytes + (ownRow() ^ lane_ % 4 * 32);
  }
  /// By which bits the address of a piece differs from that of the first of eight tokens (Layout::offset).
  static __device__ __forceinline__ unsigned atToken(int token) {
    return static_cast<unsigned>(token * 128 + (kKeepsBytes<Config> ? L::byteSwizzle(token) : token) * 16);
  }

  /// The lowest bits of the number of the piece of memory at an address.
  static __device__ __forceinline__ unsigned pieceOf(const char *address) {
    return static_cast<unsigned>(reinterpret_cast<unsigned long long>(address) / kPieceBytes);
  }

  // Offsets from the begin of the ring: a slot, and the blocks of it where bytes land. That half is free
  // first.
  static __device__ __forceinline__ unsigned slot(int step) {
    return static_cast<unsigned>(step % kSlots<Config> * L::kTileBytes);
  }
  static __device__ __forceinline__ unsigned landing(int step) {
    constexpr int kHalf = kKeepsBytes<Config> ? 0 : L::kHalfBlocks * kBlockBytes;
    return static_cast<unsigned>(step % kSlots<Config> * (L::kTileBytes + kHalf));
  }

  // Of the columns behind V's, a lane has one of four pieces of eight tokens.
  __device__ __forceinline__ int ropeToken() const { return numberOf(lane_ / 8, lane_ / 4 % 2); }
  __device__ __forceinline__ unsigned ropeRow(int eight) const {
    return static_cast<unsigned>((warp_ * kTokens + eight + ropeToken()) * 128);
  }
  __device__ __forceinline__ unsigned ropeBytes() const {
    return static_cast<unsigned>(((4 + lane_ % 4) ^ ropeToken()) * 16);
  }

  /// The scale of each of a lane's pieces of one of the warp's tokens.
  __device__ __forceinline__ void findScales(const BytePlace &place, int step, int token,
                                             float (&scale)[L::kHalfBlocks]) const {
    const int column = lane_ / 8 % 2 * 64 + lane_ % 4 * kPieceBytes;
    if constexpr (L::kKeepsScales) {
      const char *const four = ring_.shared + ring_.scales(step) + (warp_ * kTokens + token) * 16;
      if constexpr (kScaleColumns == 128) {
        const uint4 all = *reinterpret_cast<const uint4 *>(four);
        const unsigned words[4] = {all.x, all.y, all.z, all.w};
#pragma unroll
        for (int i = 0; i < L::kHalfBlocks; ++i)
          scale[i] = __uint_as_float(words[i]);
      } else {
#pragma unroll
        for (int i = 0; i < L::kHalfBlocks; ++i)
          scale[i] = reinterpret_cast<const float *>(four)[(i * 128 + column) / kScaleColumns];
      }
    } else if constexpr (kIsScaled) {
      const char *const row = rowAt(args_.k, __shfl_sync(~0u, place.row, firstLane() + token));
#pragma unroll
      for (int i = 0; i < L::kHalfBlocks; ++i)
        scale[i] = ptx::loadNow(&scaleOf<Config>(row, i * 128 + column));
    }
  }

  /// Converts a piece of the columns behind V's.
  __device__ __forceinline__ void writeRope(char *block, int eight, const uint4 &bytes) const {
    const unsigned piece = (2 * (lane_ % 4) ^ ropeToken()) * 16;
    write<typename Config::Key, false>(block + ropeRow(eight) + piece, block + ropeRow(eight) + (piece ^ 16),
                                       bytes, 1.f);
  }

  /// Writes a piece: its first eight elements, and its second ones.
  template <class Factor, bool kScalesThem>
  static __device__ __forceinline__ void write(char *first, char *second, const uint4 &bytes, float scale) {
    *reinterpret_cast<uint4 *>(first) =
        factorsOf<Stored<Config>, Factor, kScalesThem>(bytes.x, bytes.y, scale);
    *reinterpret_cast<uint4 *>(second) =
        factorsOf<Stored<Config>, Factor, kScalesThem>(bytes.z, bytes.w, scale);
  }

  const abi::AttendArgs &args_;
  const Ring<Config> &ring_;
  const int warp_, lane_;
};

} // namespace deft::sm90_latent
