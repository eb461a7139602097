#pragma once

#include "deft/common/latent_bytes.cuh"
#include "deft/common/row_place.cuh"
#include "deft/ptx/forget.cuh"
#include "deft/ptx/load_piece_now.cuh"
#include "deft/ptx/prefetch.cuh"
#include "deft/sm90_latent/layout.cuh"

/// How a copying warp moves tokens from a cache of bytes to a tile: it loads them into registers, converts
/// them to q's type and writes them to the tile. Warps that would otherwise wait convert each byte once.
/// Nothing is staged in shared memory, since 16-bit tiles leave no room. While a warp converts eight tokens,
/// it loads the next eight, even across tiles.
namespace deft::sm90_latent {

/// The places of a warp's 32 tokens of a tile: rows, and the columns after V's if these are stored apart.
template <class Config> struct ByteSource {
  unsigned row[32];
  unsigned rope[kHasScales<Config> ? 1 : 32];
};

template <class Config> class ByteRows {
  using L = Layout<Config>;
  using Factor = typename Config::Key;
  using Source = ByteSource<Config>;
  /// A lane has one of four 16-column pieces of each block in a token's row. Eight lanes then write every
  /// bank once, because two neighbouring tokens are swizzled to columns of different parity.
  static constexpr int kLanes = 4, kColumns = 64 / kLanes;
  static constexpr bool kIsScaled = kHasScales<Config>;
  static constexpr int kScaleColumns = kScaleColumnsOf<Config>;
  /// The number of blocks in which a lane's pieces share a scale.
  static constexpr int kBlocksOfScale = kIsScaled && kScaleColumns % 64 == 0 ? kScaleColumns / 64 : 1;
  static_assert(L::kHalfBlocks % kBlocksOfScale == 0, "a scale is for columns of one warp");
  static_assert(!kIsScaled || kScaleColumns % kColumns == 0, "a piece has one scale");

public:
  static constexpr int kTokens = 32 / kLanes; ///< tokens held in registers

  __device__ __forceinline__ ByteRows(const abi::AttendArgs &args, int lane) : args_(args), lane_(lane) {}

  /// The byte of a tensor at a place.
  static __device__ __forceinline__ const char *rowAt(const void *from, unsigned place) {
    return atPlace<Config, Stored<Config>>(static_cast<const char *>(from), place);
  }

  /// Prefetches the warp's columns of a token to L2, from `column` on.
  static __device__ __forceinline__ void prefetch(const char *row, int column) {
    constexpr int kLine = 128, kBytes = L::kHalfBlocks * 64;
    const char *const first = row + column;
#pragma unroll
    for (int byte = 0; byte < kBytes; byte += kLine)
      ptx::prefetch(first + byte);
    ptx::prefetch(first + kBytes - 1); // rows may begin anywhere in a line
  }

  /// Loads kTokens of the warp's 32 tokens from `token` on, in the warp's columns from `column` on.
  __device__ __forceinline__ void load(const Source &source, int column, int token) {
    load(source, column, token, lane_);
  }

  /// Converts the tokens in registers and writes them to the warp's blocks; then loads kTokens others.
  __device__ __forceinline__ void convert(char *blocks, const Source &next, int column, int token) {
    int lane = lane_; // recompute values that depend on it here, to save registers
    ptx::forgetHere(lane);
    ByteRows ahead(args_, lane);
    ahead.load(next, column, token, lane);
    __syncwarp(); // ptxas moves no load past it; without it, ptxas moves all loads to their uses
    char *const to = blocks + lane / kLanes * 128;
#pragma unroll
    for (int block = 0; block < L::kHalfBlocks; ++block)
      write<kIsScaled>(to + block * kBlockBytes, bytes_[block], scale_[block / kBlocksOfScale], lane);
    __syncwarp();
#pragma unroll
    for (int block = 0; block < L::kHalfBlocks; ++block) {
      bytes_[block] = ahead.bytes_[block];
      scale_[block / kBlocksOfScale] = ahead.scale_[block / kBlocksOfScale];
    }
  }

  /// The same for the columns after V's, if these are bytes.
  __device__ __forceinline__ void loadRope(const Source &source, int token) {
    rope_ = pieceAt(rowAt(args_.v, source.rope[token + lane_ / kLanes]) + lane_ % kLanes * kColumns);
  }
  __device__ __forceinline__ void convertRope(char *block, const Source &next, int token) {
    write<false>(block + lane_ / kLanes * 128, rope_, 1.f, lane_);
    loadRope(next, token);
  }

private:
  __device__ __forceinline__ void load(const Source &source, int first, int token, int lane) {
    const char *const row = rowAt(args_.k, source.row[token + lane / kLanes]);
    const int column = first + lane % kLanes * kColumns;
#pragma unroll
    for (int block = 0; block < L::kHalfBlocks; ++block) {
      bytes_[block] = pieceAt(row + column + block * 64);
      if constexpr (kIsScaled) {
        // If the columns of a block share a scale, its place depends only on the warp's first column.
        const int scaled = kScaleColumns % 64 == 0 ? first : column;
        if (block % kBlocksOfScale == 0)
          scale_[block / kBlocksOfScale] = ptx::loadNow(&scaleOf<Config>(row, scaled + block * 64));
      }
    }
  }
  static __device__ __forceinline__ uint4 pieceAt(const char *from) {
    return ptx::loadNow(reinterpret_cast<const uint4 *>(from));
  }

  /// Writes to the row of the lane's token in a block.
  template <bool kScales>
  static __device__ __forceinline__ void write(char *row, const uint4 &bytes, float scale, int lane) {
    const int swizzle = lane / kLanes, piece = 2 * (lane % kLanes); // tokens are multiples of eight apart
    *reinterpret_cast<uint4 *>(row + (piece ^ swizzle) * 16) =
        factorsOf<Stored<Config>, Factor, kScales>(bytes.x, bytes.y, scale);
    *reinterpret_cast<uint4 *>(row + ((piece + 1) ^ swizzle) * 16) =
        factorsOf<Stored<Config>, Factor, kScales>(bytes.z, bytes.w, scale);
  }

  const abi::AttendArgs &args_;
  const int lane_;
  uint4 bytes_[L::kHalfBlocks];
  float scale_[L::kHalfBlocks / kBlocksOfScale] = {};
  uint4 rope_;
};

} // namespace deft::sm90_latent
