#pragma once

#include "deft/ptx/fp8.cuh"
#include "deft/ptx/ldmatrix.cuh"
#include "deft/types.cuh"

/// Tiles of 8-bit elements as factors. They stay as they come from memory and are converted as each warp
/// loads its fragments: a tile of 16 bits beside them would take the shared memory that keeps copies under
/// way.
///
/// ldmatrix moves pairs of bytes. Of keys a lane gets four neighbouring dims of a token, which are its share
/// of 16 in the order that queries are loaded in (fitted_queries.cuh). Of values, transposed, it gets two
/// neighbouring columns of two tokens: one product is of even columns, the next one of odd ones, so that a
/// lane's sums are of four neighbours.
namespace deft::sm80 {

/// Of the keys of 16 tokens for step k, of 16 dims, and the next one, which need not be there: f16 operands
/// of both steps for tokens 0 to 7 and 8 to 15.
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

/// Of the values of 16 tokens for a pair of column tiles and the next one, which need not be there: f16
/// operands of both pairs for even and for odd columns.
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
