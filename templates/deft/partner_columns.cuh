#pragma once

#include "deft/ptx/convert.cuh"

/// Applies a hook to the elements of rows. A lane has two columns of neighbouring elements of a row, half a
/// row apart: they are partners. A lane has the same columns in every row, so values that depend only on dims
/// are computed once for all rows of a loop.
namespace deft {

/// The lanes of a row with `columns` columns in each half: neighbours in a warp, which sum up its squares.
/// Surplus lanes have no columns.
constexpr __device__ int lanesOfRow(int columns) {
  int lanes = 1;
  while (lanes < columns)
    lanes *= 2;
  return lanes;
}

template <class E, int kWidth> struct Column {
  float x[kWidth];

  __device__ __forceinline__ void unpack(const unsigned (&words)[kWidth / 2]) {
#pragma unroll
    for (int i = 0; i < kWidth / 2; ++i) {
      const float2 two = ptx::unpack2<E>(words[i]);
      x[2 * i] = two.x;
      x[2 * i + 1] = two.y;
    }
  }
  __device__ __forceinline__ float squares() const {
    float sum = 0.f;
#pragma unroll
    for (const float one : x)
      sum = fmaf(one, one, sum);
    return sum;
  }
};

/// For a row of kDim elements, by kLanes neighbouring lanes that together have all its squares.
template <int kLanes, int kDim> __device__ __forceinline__ float rootMeanSquare(float squares) {
#pragma unroll
  for (int step = kLanes / 2; step > 0; step /= 2)
    squares += __shfl_xor_sync(~0u, squares, step);
  return sqrtf(squares * (1.f / kDim));
}

/// Applies `element(x, half, pair, i)` to each element of a column; `half` holds its partners.
template <class E, int kWidth, class Element>
__device__ __forceinline__ void makeColumn(const Column<E, kWidth> &own, const Column<E, kWidth> &half,
                                           unsigned (&words)[kWidth / 2], Element element) {
  const auto made = [&](int i) { return element(own.x[i], half.x[i], own.x[i ^ 1], i); };
#pragma unroll
  for (int i = 0; i < kWidth; i += 2)
    words[i / 2] = ptx::pack2<E>(made(i), made(i + 1));
}

} // namespace deft
