#pragma once

#include "deft/ptx/convert.cuh"

/// A warp's fragment of a product: tiles of 16 rows and 8 columns, in the layout of mma.sync, and of
/// wgmma for each of its warps. In each tile, a lane has two rows (`r` is 0 or 1) and two columns of
/// each:
///
///   row    lane / 4 + 8 r           so four neighbouring lanes share their rows,
///   column 2 (lane % 4), and the next    and lanes of the same lane % 4 their columns.
///
/// Instructions use the registers directly (`tile`, deft/ptx); all other code selects them through this
/// header. Row addresses for ldmatrix stay with their callers: in this header they would change the machine
/// code of some kernels.
namespace deft {

/// The row of a lane's half `r` of a fragment.
__device__ __forceinline__ int fragmentRow(int lane, int r) { return lane / 4 + 8 * r; }
/// The lane's first column of each tile.
__device__ __forceinline__ int fragmentColumn(int lane) { return lane % 4 * 2; }
/// The first of the four lanes that hold a row, and whether a lane is the first of its four.
__device__ __forceinline__ int firstLaneOfRow(int row) { return row % 8 * 4; }
__device__ __forceinline__ bool isFirstOfRow(int lane) { return lane % 4 == 0; }

/// The sum over the four lanes of a row, in all of them.
__device__ __forceinline__ float sumOfRow(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  x += __shfl_xor_sync(~0u, x, 2);
  return x;
}
__device__ __forceinline__ float largestOfRow(float x) {
  x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
  x = fmaxf(x, __shfl_xor_sync(~0u, x, 2));
  return x;
}

template <int kTiles> struct Fragment {
  float tile[kTiles][4];

  /// Tiles first, first + 1, ...
  template <int kCount> __device__ __forceinline__ Fragment<kCount> &part(int first) {
    return reinterpret_cast<Fragment<kCount> &>(tile[first]);
  }
  template <int kCount> __device__ __forceinline__ const Fragment<kCount> &part(int first) const {
    return reinterpret_cast<const Fragment<kCount> &>(tile[first]);
  }

  /// Calls f(value, r, column after its first one) for the lane's values of tile n.
  template <class F> __device__ __forceinline__ void forEachOfTile(int n, F &&f) {
#pragma unroll
    for (int c = 0; c < 4; ++c)
      f(tile[n][c], c / 2, n * 8 + c % 2);
  }
  /// The same for all tiles, in order.
  template <class F> __device__ __forceinline__ void forEach(F &&f) {
#pragma unroll
    for (int n = 0; n < kTiles; ++n)
      forEachOfTile(n, f);
  }
  template <class F> __device__ __forceinline__ void forEach(F &&f) const {
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
#pragma unroll
      for (int c = 0; c < 4; ++c)
        f(tile[n][c], c / 2, n * 8 + c % 2);
    }
  }
  /// Calls f(value) for the values of row half r.
  template <class F> __device__ __forceinline__ void forEachOfRow(int r, F &&f) {
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
      f(tile[n][2 * r]);
      f(tile[n][2 * r + 1]);
    }
  }

  /// The maximum of `least` and the lane's values of row half r.
  __device__ __forceinline__ float largest(int r, float least) const {
#pragma unroll
    for (int n = 0; n < kTiles; ++n)
      least = fmaxf(least, largestOfTile(n, r));
    return least;
  }
  __device__ __forceinline__ float largest(int r) const {
    float top = largestOfTile(0, r);
#pragma unroll
    for (int n = 1; n < kTiles; ++n)
      top = fmaxf(top, largestOfTile(n, r));
    return top;
  }

  __device__ __forceinline__ void scaleRows(const float (&factor)[2]) {
    forEach([&](float &x, int r, int) { x *= factor[r]; });
  }

private:
  __device__ __forceinline__ float largestOfTile(int n, int r) const {
    return fmaxf(tile[n][2 * r], tile[n][2 * r + 1]);
  }
};

/// Rounds 16 columns to the a operand of a product of that depth.
template <class Element> __device__ __forceinline__ void packOperand(const Fragment<2> &s, unsigned (&a)[4]) {
  a[0] = ptx::pack2<Element>(s.tile[0][0], s.tile[0][1]);
  a[1] = ptx::pack2<Element>(s.tile[0][2], s.tile[0][3]);
  a[2] = ptx::pack2<Element>(s.tile[1][0], s.tile[1][1]);
  a[3] = ptx::pack2<Element>(s.tile[1][2], s.tile[1][3]);
}

} // namespace deft
