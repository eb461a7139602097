#pragma once

#include "deft/ptx/fp8.cuh"
#include "deft/ptx/ldmatrix.cuh"
#include "deft/types.cuh"

/// Tiles of 8-bit elements. They stay bytes in shared memory; each warp converts them when it
/// loads its fragments. An additional 16-bit tile would take the shared memory of copies in
/// flight.
///
/// ldmatrix moves pairs of bytes. For keys, a lane gets four neighbouring dims of a token: its share of 16 in
/// the order of loaded queries (fitted_queries.cuh). For transposed values, it gets two neighbouring columns
/// of two tokens: one product is for even columns, the next for odd ones, so a lane's sums are of four
/// neighbours.
namespace deft::sm80 {

/// Keys of 16 tokens for step k (of 16 dims) and for the next step, if there is one: f16 operands of both
/// steps for tokens 0 to 7 and 8 to 15.
template <class Element, class Rows, int kSteps>
__device__ __forceinline__ void loadKeys(unsigned tile, int firstToken, int k, int lane,
                                         unsigned (&b)[2][2][2]) {
  unsigned bytes[4];
  const int step = k + lane / 16;
  ptx::ldmatrix4(bytes, tile + Rows::offset(firstToken + lane % 16,
                                            kSteps % 2 == 0 || step < kSteps ? step : kSteps - 1));
#pragma unroll
  for (int i = 0; i < 4; ++i)
    ptx::toHalves<Element>(bytes[i], b[i / 2][i % 2]);
}

/// Values of 16 tokens for a pair of column tiles and for the next pair, if there is one: f16 operands of
/// both pairs for even and for odd columns.
template <class Element, class Rows, int kPairs>
__device__ __forceinline__ void loadValues(unsigned tile, int firstToken, int pair, int lane,
                                           unsigned (&b)[2][2][2]) {
  unsigned bytes[4];
  const int column = pair + lane / 16;
  ptx::ldmatrix4Transposed(
      bytes,
      tile + Rows::offset(firstToken + lane % 16, kPairs % 2 == 0 || column < kPairs ? column : kPairs - 1));
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    unsigned columns[2];
    ptx::toColumns<Element>(bytes[i], columns);
    b[i / 2][0][i % 2] = columns[0];
    b[i / 2][1][i % 2] = columns[1];
  }
}

} // namespace deft::sm80
