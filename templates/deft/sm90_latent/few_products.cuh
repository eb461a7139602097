#pragma once

#include "deft/common/fragment.cuh"
#include "deft/ptx/wgmma.cuh"
#include "deft/sm90_latent/layout.cuh"

/// The products of a warpgroup for units of at most 16 rows over tiles of 16-bit elements. wgmma has 64 rows,
/// so both products are transposed. The rows of wgmma are tokens in the first product and columns of V in the
/// second. Its 16 columns are the unit's rows.
namespace deft::sm90_latent {

template <class Config> class FewProducts {
  using L = Layout<Config>;
  using Few = FewLayout<Config>;
  using Out = typename Few::Out;
  using Key = typename Config::Key;
  using Value = typename Config::Value;
  static constexpr int kTokens = Few::kTokens;
  static constexpr int kGroups = Config::kTileKv / kTokens; ///< groups of so many tokens in a tile
  /// Partial sums of a score. A short product waits for the one before it in its chain.
  static constexpr int kChains = 4;

public:
  __device__ __forceinline__ FewProducts(const Ring<Config> &ring, int group, int warp, int lane)
      : ring_(ring), group_(group), warp_(warp), lane_(lane) {}

  /// The scores of the warp's 16 tokens: rows by tokens. Calls `meanwhile` while products are computed, and
  /// `release` once the queries have been read.
  template <class Meanwhile, class Release>
  __device__ __forceinline__ void scores(int step, Fragment<2> &s, Meanwhile meanwhile,
                                         Release release) const {
    Fragment<2> chains[kChains];
    startKeys(step, chains);
    meanwhile();
    ptx::wgmmaWait<0>();
#pragma unroll
    for (int i = 0; i < kChains; ++i)
      ptx::wgmmaPin(chains[i].tile);
    release();
    turn(chains, s);
  }

  /// Adds the tile's weighted values to the sums. The columns that the other warpgroup will write come first.
  /// Calls `release` for each part of the slot that has been read.
  template <class Release>
  __device__ __forceinline__ void addValues(int step, Out (&out)[L::kValueBlocks], Release release) const {
    const unsigned long long weights = descriptor(ring_.few() + Few::weightsAt(group_, step, 0));
    ptx::wgmmaFence();
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int part = half == 0 ? 1 - group_ : group_;
      const unsigned long long values = descriptor(ring_.tile(step) + part * L::kHalfBlocks * kBlockBytes);
#pragma unroll
      for (int g = 0; g < kGroups; ++g)
#pragma unroll
        for (int i = 0; i < L::kHalfBlocks; ++i)
          ptx::WgmmaOfFew<Value>::template step<true>(out[half * L::kHalfBlocks + i].tile,
                                                      values + (i * kBlockBytes + g * kTokens * 128) / 16,
                                                      weights + g * 2, true);
      ptx::wgmmaCommit();
    }
    // The first products have read part kOther, so its next copies may start.
    ptx::wgmmaWait<1>();
    release(kOther);
    ptx::wgmmaWait<0>();
#pragma unroll
    for (int i = 0; i < L::kValueBlocks; ++i)
      ptx::wgmmaPin(out[i].tile);
    release(kOwn);
  }

private:
  /// The descriptor of a matrix in shared memory, known to be the same in the whole warp. Only blocks of 64
  /// columns are read, so the distance between them does not matter.
  static __device__ __forceinline__ unsigned long long descriptor(unsigned matrix) {
    return ptx::wgmmaDescriptor(__shfl_sync(~0u, matrix, 0), kBlockBytes);
  }

  __device__ __forceinline__ void startKeys(int step, Fragment<2> (&chains)[kChains]) const {
    const unsigned long long keys = descriptor(ring_.tile(step)), queries = descriptor(ring_.queries());
    ptx::wgmmaFence();
#pragma unroll
    for (int k = 0; k < Config::kKeyDim / 16; ++k) // 16 columns each
      ptx::WgmmaOfFew<Key>::template step<false>(
          chains[k % kChains].tile, keys + (k / 4 * kBlockBytes + k % 4 * 32) / 16,
          queries + (k / 4 * L::kQueryBlockBytes + k % 4 * 32) / 16, k >= kChains);
    ptx::wgmmaCommit();
  }

  /// Adds up the chains and transposes the scores. In the chains a lane has two tokens of four rows; in `s`
  /// it has two rows of four tokens.
  __device__ __forceinline__ void turn(const Fragment<2> (&chains)[kChains], Fragment<2> &s) const {
    float *const turned = ring_.template fewAt<float>(Few::kStageOffset + group_ * Few::kStageBytes +
                                                      warp_ * Few::kTurnedBytes);
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const auto of = [&](int chain) { return chains[chain].tile[n][c]; };
        turned[(n * 8 + fragmentColumn(lane_) + c % 2) * Few::kTurnedRow + fragmentRow(lane_, c / 2)] =
            (of(0) + of(1)) + (of(2) + of(3));
      }
    __syncwarp();
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const float2 pair = *reinterpret_cast<const float2 *>(
            turned + fragmentRow(lane_, r) * Few::kTurnedRow + n * 8 + fragmentColumn(lane_));
        s.tile[n][2 * r] = pair.x;
        s.tile[n][2 * r + 1] = pair.y;
      }
  }

  const Ring<Config> &ring_;
  const int group_, warp_, lane_;
};

} // namespace deft::sm90_latent
