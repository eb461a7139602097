#pragma once

#include "deft/common/fragment.cuh"
#include "deft/ptx/fp8.cuh"
#include "deft/ptx/ldmatrix.cuh"
#include "deft/ptx/mma_sync.cuh"
#include "deft/sm90_latent/few_scales.cuh"
#include "deft/sm90_latent/layout.cuh"

/// The products of a warpgroup for units of at most 16 rows over tiles of bytes. A warp converts the bytes in
/// registers and multiplies them by mma.sync, which reads both factors from there.
///
///   scores  rows x tokens = q K^T        a warp has 16 tokens of a tile
///   sums    columns x rows = V^T p^T     a warp has 16 columns of each block of 64
///
/// A lane reads 16 bytes of a token at once. So the columns of one product are not neighbours. Queries have
/// them in the same order (FewQueries).
namespace deft::sm90_latent {

template <class Config> class FewByteProducts {
  using L = Layout<Config>;
  using Few = FewLayout<Config>;
  using Out = typename Few::Out;
  using Key = typename Config::Key;
  using Scales = FewScales<Config>;
  static constexpr int kTokens = Few::kTokens;
  static constexpr int kScales = kFewScales<Config>;
  /// Partial sums of a score: one for each scale, so that tokens' scales multiply sums. Columns behind V's
  /// that have q's type have one more.
  static constexpr int kChains = 4, kAllChains = kChains + (kScales > 0 ? 1 : 0);
  static_assert(kScales == 0 || (kScales == kChains && kScaleColumnsOf<Config> % 64 == 0));

public:
  __device__ __forceinline__ FewByteProducts(const Ring<Config> &ring, int group, int warp, int lane)
      : ring_(ring), group_(group), warp_(warp), lane_(lane) {}

  /// See FewProducts.
  template <class Meanwhile, class Release>
  __device__ __forceinline__ void scores(int step, Fragment<2> &s, Meanwhile meanwhile,
                                         Release release) const {
    meanwhile();
    Fragment<2> chains[kAllChains] = {};
#pragma unroll
    for (int i = 0; i < L::kHalfBlocks; ++i) // two chains in turn
      multiplyBlocks<2>(step, {i, i + L::kHalfBlocks},
                        {&chains[chainOf(i)], &chains[chainOf(i + L::kHalfBlocks)]});
    if constexpr (kScales > 0)
      multiplyRope(step, chains[kChains]);
    else
      multiplyBlocks<1>(step, {L::kValueBlocks}, {&chains[0]});
    release();
    addUp(step, chains, s);
  }

  /// See FewProducts.
  template <class Release>
  __device__ __forceinline__ void addValues(int step, Out (&out)[L::kValueBlocks], Release release) const {
    addHalf<0>(step, out);
    release(kOther);
    addHalf<1>(step, out);
    release(kOwn);
  }

private:
  static __device__ __forceinline__ constexpr int chainOf(int block) {
    return kScales > 0 ? Few::setOf(block) : block % 2 + block / L::kHalfBlocks * 2;
  }

  /// Adds the products of blocks of 64 columns to their chains.
  template <int kCount>
  __device__ __forceinline__ void multiplyBlocks(int step, const int (&block)[kCount],
                                                 Fragment<2> *const (&chain)[kCount]) const {
    uint4 keys[kCount][2];
#pragma unroll
    for (int b = 0; b < kCount; ++b)
#pragma unroll
      for (int n = 0; n < 2; ++n)
        keys[b][n] = keysAt(step, block[b], n);
#pragma unroll
    for (int k = 0; k < 4; ++k)
#pragma unroll
      for (int b = 0; b < kCount; ++b) {
        unsigned q[4];
        loadQueries(block[b], k, q);
#pragma unroll
        for (int n = 0; n < 2; ++n) {
          const uint4 &all = keys[b][n];
          unsigned halves[2];
          ptx::toHalves<Stored<Config>>(k == 0 ? all.x : k == 1 ? all.y : k == 2 ? all.z : all.w, halves);
          ptx::mma16816<f16>(chain[b]->tile[n], q, halves[0], halves[1]);
        }
      }
  }

  /// The lane's 16 bytes of a token's columns in a block. `n`: of the first or the second eight tokens.
  __device__ __forceinline__ uint4 keysAt(int step, int block, int n) const {
    const int token = warp_ * kTokens + lane_ / 4, piece = lane_ % 4;
    const unsigned at = block < L::kValueBlocks ? L::byteOffset(token, block % 2 * 4 + piece) +
                                                      block / 2 * kBlockBytes + n * 8 * 128
                                                : L::kRopeOffset + token * 64 + piece * 16 + n * 8 * 64;
    return *reinterpret_cast<const uint4 *>(ring_.shared + (ring_.tile(step) - ring_.base) + at);
  }

  /// 16 columns of the queries in a block of 64, from 16 k on.
  __device__ __forceinline__ void loadQueries(int block, int k, unsigned (&q)[4]) const {
    ptx::ldmatrix4(q, ring_.queries() + block * L::kQueryBlockBytes +
                          L::pieceAt(lane_ / 8 % 2 * 8 + lane_ % 8, k * 2 + lane_ / 16));
  }

  /// Adds the products of the columns behind V's, which have q's type.
  __device__ __forceinline__ void multiplyRope(int step, Fragment<2> &sums) const {
    const int low = lane_ / 8 % 2, high = lane_ / 16;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      unsigned q[4], keys[4];
      loadQueries(L::kValueBlocks, k, q);
      ptx::ldmatrix4(keys, ring_.tile(step) + L::kRopeOffset +
                               L::pieceAt(warp_ * kTokens + high * 8 + lane_ % 8, k * 2 + low));
      ptx::mma16816<Key>(sums.tile[0], q, keys[0], keys[1]);
      ptx::mma16816<Key>(sums.tile[1], q, keys[2], keys[3]);
    }
  }

  /// Adds up the chains, with the scales of tokens and the factors of queries.
  __device__ __forceinline__ void addUp(int step, const Fragment<2> (&chains)[kAllChains],
                                        Fragment<2> &s) const {
    const float factors[2] = {FewQueries<Config>::factorOf(ring_, fragmentRow(lane_, 0)),
                              FewQueries<Config>::factorOf(ring_, fragmentRow(lane_, 1))};
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        typename Scales::Token token;
        if constexpr (kScales > 0)
          token = Scales::tokenOf(ring_, step, warp_ * kTokens + n * 8 + fragmentColumn(lane_) + j);
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const auto of = [&](int chain) { return chains[chain].tile[n][2 * r + j]; };
          float &sum = s.tile[n][2 * r + j];
          if constexpr (kScales > 0)
            sum =
                ((of(0) * token.of[0] + of(1) * token.of[1]) + (of(2) * token.of[2] + of(3) * token.of[3])) *
                    factors[r] +
                of(kChains);
          else
            sum = ((of(0) + of(1)) + (of(2) + of(3))) * factors[r];
        }
      }
  }

  /// Adds the weighted values of half of the columns. kHalf 0: those that the other warpgroup will write.
  template <int kHalf> __device__ __forceinline__ void addHalf(int step, Out (&out)[L::kValueBlocks]) const {
    const int low = lane_ / 8 % 2, high = lane_ / 16;
    const int first = (kHalf == 0 ? 1 - group_ : group_) * L::kHalfBlocks;
#pragma unroll
    for (int begin = 0; begin < Config::kTileKv; begin += 32) {
      unsigned values[2][L::kHalfBlocks][4]; // of 16 tokens each
#pragma unroll
      for (int i = 0; i < L::kHalfBlocks; ++i) {
        unsigned bytes[4]; // of eight tokens each
        ptx::ldmatrix4Transposed(bytes,
                                 ring_.tile(step) + L::byteOffset(begin + lane_, (first + i) * 4 + warp_));
#pragma unroll
        for (int eight = 0; eight < 4; ++eight) {
          unsigned halves[2];
          ptx::toColumns<Stored<Config>>(bytes[eight], halves);
          values[eight / 2][i][eight % 2 * 2] = halves[0];
          values[eight / 2][i][eight % 2 * 2 + 1] = halves[1];
        }
      }
#pragma unroll
      for (int g = 0; g < 2; ++g) {
        unsigned weights[4];
#pragma unroll
        for (int i = 0; i < L::kHalfBlocks; ++i) {
          if (i == 0 || Few::setOf(i) != Few::setOf(i - 1))
            ptx::ldmatrix4(weights, ring_.few() + Few::weightsAt(group_, step, Few::setOf(first + i)) +
                                        L::pieceAt(high * 8 + lane_ % 8, begin / 8 + g * 2 + low));
          Out &sums = out[kHalf * L::kHalfBlocks + i];
          ptx::mma16816<f16>(sums.tile[0], values[g][i], weights[0], weights[1]);
          ptx::mma16816<f16>(sums.tile[1], values[g][i], weights[2], weights[3]);
        }
      }
    }
  }

  const Ring<Config> &ring_;
  const int group_, warp_, lane_;
};

} // namespace deft::sm90_latent
