#pragma once

#include "deft/common/fitted_rows.cuh"
#include "deft/ptx/ldmatrix.cuh"
#include "deft/ptx/mbarrier.cuh"
#include "deft/ptx/use_never.cuh"
#include "deft/ptx/wgmma.cuh"
#include "deft/sm90/layout.cuh"

/// The queries of a warpgroup's 64 rows and of a warp's 16 rows, as operands of q . k.
namespace deft::sm90 {

/// The descriptor of a matrix in shared memory, known to be the same in the whole warp: descriptors of its
/// parts are then sums of constants on the uniform path. For `leading`, see wgmmaDescriptor.
__device__ __forceinline__ unsigned long long descriptor(unsigned matrix, unsigned leading) {
  return ptx::wgmmaDescriptor(__shfl_sync(~0u, matrix, 0), leading);
}

/// The distance from a matrix's first descriptor to that of its k-th 16 columns.
template <class Config> __device__ __forceinline__ constexpr int stepOf(int k) {
  return (k / 4 * Layout<Config>::kBlockBytes + k % 4 * 32) / 16;
}

/// Queries in registers, as the a operand of m16k16 steps.
template <class Config, bool kStay = Layout<Config>::kQueriesStay> class WarpQueries {
  using L = Layout<Config>;
  using Key = typename Config::Key;
  static constexpr int kSteps = Config::kKeyDim / 16;

public:
  /// The warp's rows start at `firstRow` of the piece.
  __device__ __forceinline__ WarpQueries(unsigned piece, int firstRow) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int k = 0; k < kSteps; ++k)
      ptx::ldmatrix4(query_[k], piece + L::offset(firstRow + lane % 16, 2 * k + lane / 16));
    if constexpr (kFits)
      fitted_.fit(query_);
  }

  /// Starts s = q . k for the 64 keys of a tile.
  __device__ __forceinline__ void startKeys(unsigned long long keys, Fragment<8> &s) const {
#pragma unroll
    for (int k = 0; k < kSteps; ++k)
      ptx::Wgmma<Key, 64>::template step<false>(s.tile, query_[k], keys + stepOf<Config>(k), k > 0);
  }

  /// Restores the products of the original queries.
  template <int kTiles> __device__ __forceinline__ void restore(Fragment<kTiles> &products) const {
    if constexpr (kFits)
      fitted_.restore(products);
  }

  /// The a operand of step k of mma.sync, if the warp has the piece's first rows.
  __device__ __forceinline__ void operand(int k, unsigned (&a)[4]) const {
#pragma unroll
    for (int i = 0; i < 4; ++i)
      a[i] = query_[k][i];
  }

  /// A dummy use of the queries, after each use of other registers by wgmma. If queries need as many
  /// registers as a tile's weights, or V has as many columns as a tile has tokens, ptxas 13.0 confuses the
  /// two sets of registers, unless an instruction other than wgmma reads them (docs/kernels.md#ptxas).
  __device__ __forceinline__ void hold(unsigned shared) const {
    if constexpr (kSteps == kTileSteps) {
      ptx::useNever(query_, shared);
    } else if constexpr (Config::kValueDim == Config::kTileKv) {
#pragma unroll
      for (int k = 0; k < kSteps; ++k)
        ptx::useNever(query_[k], shared);
    }
  }

private:
  static constexpr int kTileSteps = Config::kTileKv / 16; ///< of the weights
  static constexpr bool kFits = !kIsSame<typename Config::Query, Key>;
  unsigned query_[kSteps][4];
  FittedRows<typename Config::Query> fitted_;
};

/// Queries that stay in shared memory.
template <class Config> class WarpQueries<Config, true> {
  using L = Layout<Config>;
  using Key = typename Config::Key;
  static constexpr int kSteps = Config::kKeyDim / 16;

public:
  __device__ __forceinline__ WarpQueries(unsigned piece, int) : piece_(piece) {
    ptx::fenceAsyncProxy(); // cp.async has written them
  }

  __device__ __forceinline__ void startKeys(unsigned long long keys, Fragment<8> &s) const {
    const unsigned long long queries = descriptor(piece_, 16);
#pragma unroll
    for (int k = 0; k < kSteps; ++k)
      ptx::WgmmaOfShared<Key>::step(s.tile, queries + stepOf<Config>(k), keys + stepOf<Config>(k), k > 0);
  }

  __device__ __forceinline__ void operand(int k, unsigned (&a)[4]) const {
    const int lane = threadIdx.x % 32;
    ptx::ldmatrix4(a, piece_ + L::offset(lane % 16, 2 * k + lane / 16));
  }

  template <int kTiles> __device__ __forceinline__ void restore(Fragment<kTiles> &) const {}
  __device__ __forceinline__ void hold(unsigned) const {}

private:
  const unsigned piece_;
};

} // namespace deft::sm90
