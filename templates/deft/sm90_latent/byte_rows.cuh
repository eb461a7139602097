#pragma once

#include "deft/common/latent_bytes.cuh"
#include "deft/common/row_place.cuh"
#include "deft/ptx/forget.cuh"
#include "deft/ptx/prefetch.cuh"
#include "deft/sm90_latent/layout.cuh"

/// How a copying warp brings tokens from a cache of bytes: through registers, where they become q's elements,
/// straight into the tile. Each byte is converted once, by warps that would wait otherwise, and nothing is
/// staged in shared memory, of which tiles of 16 bits leave none.
namespace deft::sm90_latent {

/// 32 tokens of a tile, a lane's own at `place`, and as many of V's columns as a warpgroup has.
template <class Config> class ByteRows {
  using L = Layout<Config>;
  using Factor = typename Config::Key;
  /// Of a token's row, a lane has one of four pieces of 16 columns of each block. Eight lanes then write all
  /// banks once, since two neighbouring tokens are swizzled to columns of other parity.
  static constexpr int kLanes = 4, kTokens = 32 / kLanes, kColumns = 64 / kLanes;
  static constexpr bool kIsScaled = kHasScales<Config>;
  static constexpr int kScaleColumns = kScaleColumnsOf<Config>;
  /// Blocks of which a lane's pieces share a scale.
  static constexpr int kBlocksOfScale = kIsScaled && kScaleColumns % 64 == 0 ? kScaleColumns / 64 : 1;
  static_assert(L::kHalfBlocks % kBlocksOfScale == 0, "a scale is for columns of one warp");
  static_assert(!kIsScaled || kScaleColumns % kColumns == 0, "a piece has one scale");

public:
  /// `rope`: the place of the columns behind V's, which is `place` where rows have scales. `first`: of V's
  /// columns.
  __device__ __forceinline__ ByteRows(const abi::AttendArgs &args, unsigned place, unsigned rope, int first,
                                      int lane)
      : args_(args), place_(place), rope_(kIsScaled ? place : rope),
        column_(first + lane % kLanes * kColumns), lane_(lane) {}

  /// Asks all tokens to come to L2.
  __device__ __forceinline__ void prefetch() const {
    constexpr int kLine = 128, kBytes = L::kHalfBlocks * 64;
    const char *own = atPlace<Config, Stored<Config>>(static_cast<const char *>(args_.k), place_) + column_ -
                      lane_ % kLanes * kColumns;
#pragma unroll
    for (int byte = 0; byte < kBytes; byte += kLine)
      ptx::prefetch(own + byte);
    ptx::prefetch(own + kBytes - 1); // rows begin anywhere in a line
  }
  __device__ __forceinline__ void prefetchRope() const {
    ptx::prefetch(atPlace<Config, Stored<Config>>(static_cast<const char *>(args_.v), rope_));
  }

  /// Of the first eight tokens; the others follow as these are converted.
  __device__ __forceinline__ void load() {
    const char *const row = rowOf<kTokens>(args_.k, place_, 0);
#pragma unroll
    for (int block = 0; block < L::kHalfBlocks; ++block) {
      bytes_[block] = pieceOf(row, block);
      if (block % kBlocksOfScale == 0)
        scale_[block / kBlocksOfScale] = scaleAt(row, block);
    }
  }

  /// To blocks of a tile. A piece's registers take the one of eight tokens on as soon as it is converted.
  __device__ __forceinline__ void convert(char *blocks) {
    char *to = blocks + lane_ / kLanes * 128;
#pragma unroll 1
    for (int token = kTokens; token < 32; token += kTokens, to += kTokens * 128) {
      const char *const row = rowOf<kTokens>(args_.k, place_, token);
#pragma unroll
      for (int block = 0; block < L::kHalfBlocks; ++block) {
        put(to, block);
        bytes_[block] = pieceOf(row, block);
        if (block % kBlocksOfScale == kBlocksOfScale - 1)
          scale_[block / kBlocksOfScale] = scaleAt(row, block);
      }
    }
#pragma unroll
    for (int block = 0; block < L::kHalfBlocks; ++block)
      put(to, block);
  }

  /// The columns behind V's, to their block.
  __device__ __forceinline__ void convertRope(char *block) const {
    int lane = lane_; // what follows from it is made here: registers are few
    ptx::forgetHere(lane);
    if constexpr (kIsScaled) { // of q's type already
#pragma unroll 1
      for (int token = 0; token < 32; token += 8) {
        uint4 pieces[2];
#pragma unroll
        for (int i = 0; i < 2; ++i)
          pieces[i] =
              *reinterpret_cast<const uint4 *>(rowOf<4>(args_.v, rope_, token + i * 4) + lane % 8 * 16);
#pragma unroll
        for (int i = 0; i < 2; ++i)
          *reinterpret_cast<uint4 *>(block + L::offset(token + i * 4 + lane / 8, lane % 8)) = pieces[i];
      }
    } else {
#pragma unroll 1
      for (int token = 0; token < 32; token += 2 * kTokens) {
        uint4 pieces[2];
#pragma unroll
        for (int i = 0; i < 2; ++i)
          pieces[i] = *reinterpret_cast<const uint4 *>(rowOf<kTokens>(args_.v, rope_, token + i * kTokens) +
                                                       lane % kLanes * kColumns);
#pragma unroll
        for (int i = 0; i < 2; ++i)
          write<false>(block + (token + i * kTokens + lane / kLanes) * 128, pieces[i], 1.f);
      }
    }
  }

private:
  /// The row of the lane's token among those from `token` on, kAtOnce of which the warp has at a time.
  template <int kAtOnce>
  __device__ __forceinline__ const char *rowOf(const void *from, unsigned place, int token) const {
    return atPlace<Config, Stored<Config>>(static_cast<const char *>(from),
                                           __shfl_sync(~0u, place, token + lane_ / (32 / kAtOnce)));
  }

  __device__ __forceinline__ uint4 pieceOf(const char *row, int block) const {
    return *reinterpret_cast<const uint4 *>(row + column_ + block * 64);
  }
  __device__ __forceinline__ float scaleAt(const char *row, int block) const {
    if constexpr (kIsScaled && kScaleColumns % 64 == 0) // which columns of a block share
      return scaleOf<Config>(row + block * 64 / kScaleColumns * 4, column_);
    else if constexpr (kIsScaled)
      return scaleOf<Config>(row, column_ + block * 64);
    return 1.f;
  }

  /// The piece of a block, to its row there.
  __device__ __forceinline__ void put(char *to, int block) const {
    write<kIsScaled>(to + block * kBlockBytes, bytes_[block], scale_[block / kBlocksOfScale]);
  }
  template <bool kScales>
  __device__ __forceinline__ void write(char *row, const uint4 &bytes, float scale) const {
    const int swizzle = lane_ / kLanes, piece = 2 * (lane_ % kLanes); // tokens are eights apart
    *reinterpret_cast<uint4 *>(row + (piece ^ swizzle) * 16) =
        factorsOf<Stored<Config>, Factor, kScales>(bytes.x, bytes.y, scale);
    *reinterpret_cast<uint4 *>(row + ((piece + 1) ^ swizzle) * 16) =
        factorsOf<Stored<Config>, Factor, kScales>(bytes.z, bytes.w, scale);
  }

  const abi::AttendArgs &args_;
  const unsigned place_, rope_;
  const int column_, lane_; ///< the lane's first column of V
  uint4 bytes_[L::kHalfBlocks];
  float scale_[L::kHalfBlocks / kBlocksOfScale];
};

} // namespace deft::sm90_latent
