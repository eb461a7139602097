#pragma once

#include "deft/common/latent_bytes.cuh"
#include "deft/common/row_place.cuh"
#include "deft/ptx/forget.cuh"
#include "deft/ptx/load_piece_now.cuh"
#include "deft/ptx/prefetch.cuh"
#include "deft/sm90_latent/layout.cuh"

/// How a copying warp brings tokens from a cache of bytes: through registers, where they become q's elements,
/// straight into the tile. Each byte is converted once, by warps that would wait otherwise, and nothing is
/// staged in shared memory, of which tiles of 16 bits leave none. While eight tokens are converted, the next
/// eight are on their way, also across tiles.
namespace deft::sm90_latent {

/// Where a warp's 32 tokens of a tile lie: rows, and the columns behind V's where these lie apart.
template <class Config> struct ByteSource {
  unsigned row[32];
  unsigned rope[kHasScales<Config> ? 1 : 32];
};

template <class Config> class ByteRows {
  using L = Layout<Config>;
  using Factor = typename Config::Key;
  using Source = ByteSource<Config>;
  /// Of a token's row, a lane has one of four pieces of 16 columns of each block. Eight lanes then write all
  /// banks once, since two neighbouring tokens are swizzled to columns of other parity.
  static constexpr int kLanes = 4, kColumns = 64 / kLanes;
  static constexpr bool kIsScaled = kHasScales<Config>;
  static constexpr int kScaleColumns = kScaleColumnsOf<Config>;
  /// Blocks of which a lane's pieces share a scale.
  static constexpr int kBlocksOfScale = kIsScaled && kScaleColumns % 64 == 0 ? kScaleColumns / 64 : 1;
  static_assert(L::kHalfBlocks % kBlocksOfScale == 0, "a scale is for columns of one warp");
  static_assert(!kIsScaled || kScaleColumns % kColumns == 0, "a piece has one scale");

public:
  static constexpr int kTokens = 32 / kLanes; ///< that registers hold

  __device__ __forceinline__ ByteRows(const abi::AttendArgs &args, int lane) : args_(args), lane_(lane) {}

  /// The byte of a tensor at a place.
  static __device__ __forceinline__ const char *rowAt(const void *from, unsigned place) {
    return atPlace<Config, Stored<Config>>(static_cast<const char *>(from), place);
  }

  /// Asks for the warp's columns of a token to come to L2, from `column` on.
  static __device__ __forceinline__ void prefetch(const char *row, int column) {
    constexpr int kLine = 128, kBytes = L::kHalfBlocks * 64;
    const char *const first = row + column;
#pragma unroll
    for (int byte = 0; byte < kBytes; byte += kLine)
      ptx::prefetch(first + byte);
    ptx::prefetch(first + kBytes - 1); // rows begin anywhere in a line
  }

  /// kTokens from the one on, of the warp's 32, and its columns from `column` on.
  __device__ __forceinline__ void load(const Source &source, int column, int token) {
    load(source, column, token, lane_);
  }

  /// Those that registers hold, to their rows of the warp's blocks; kTokens others come in their place.
  __device__ __forceinline__ void convert(char *blocks, const Source &next, int column, int token) {
    int lane = lane_; // what follows from it is made here: registers are few
    ptx::forgetHere(lane);
    ByteRows ahead(args_, lane);
    ahead.load(next, column, token, lane);
    __syncwarp(); // ptxas moves no load past it, and else moves all to where they are needed
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

  /// The same of the columns behind V's, where these are bytes.
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
        // Where the columns of a block share a scale, its place follows from the warp's.
        const int scaled = kScaleColumns % 64 == 0 ? first : column;
        if (block % kBlocksOfScale == 0)
          scale_[block / kBlocksOfScale] = ptx::loadNow(&scaleOf<Config>(row, scaled + block * 64));
      }
    }
  }
  static __device__ __forceinline__ uint4 pieceAt(const char *from) {
    return ptx::loadNow(reinterpret_cast<const uint4 *>(from));
  }

  /// To the row of the lane's token in a block.
  template <bool kScales>
  static __device__ __forceinline__ void write(char *row, const uint4 &bytes, float scale, int lane) {
    const int swizzle = lane / kLanes, piece = 2 * (lane % kLanes); // tokens are eights apart
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
