#pragma once

#include "deft/common/fitted_rows.cuh"
#include "deft/common/warp_rows.cuh"
#include "deft/sm80/shared_layout.cuh"

/// Fitted queries, with their dims in the order of a lane's converted keys.
///
/// A load of matrices gives a lane four neighbouring bytes; with 16-bit elements it gives two, and two that
/// are eight further on. So products use another order within each 16 dims: dims 2c, 2c + 1, 2c + 8 and 2c +
/// 9 of an instruction are dims 4c to 4c + 3 of q and k.
namespace deft::sm80 {

template <class Query> class FittedQueries : public FittedRows<Query> {
  using Fitted = FittedRows<Query>;
  using Fitted::kFits;

public:
  /// Loads the warp's queries into registers, directly from global memory.
  template <class Rows, int kSteps>
  __device__ __forceinline__ void load(const Rows &rows, int lane, unsigned (&query)[kSteps][4]) {
    rows.awaitQueries();
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const Query *from = rows.queryRow(rows.clamped(rows.row(r))) + 2 * fragmentColumn(lane);
#pragma unroll
      for (int k = 0; k < kSteps; ++k) {
        const uint2 four = *reinterpret_cast<const uint2 *>(from + k * 16);
        query[k][r] = four.x;
        query[k][r + 2] = four.y;
      }
    }
    Fitted::fit(query);
  }

  /// Stores the block's queries in shared memory, in the layout for ldmatrix; half a warp stores a row. After
  /// the block's next barrier, all threads may read them and call takeUnits.
  template <class Config, class Rows>
  static __device__ __forceinline__ void store(const Rows &rows, char *shared) {
    using Layout = SharedLayout<Config>;
    constexpr int kSteps = Config::kKeyDim / 16;
    static_assert(kSteps <= 16, "a lane has 16 elements");
    rows.awaitQueries();
    for (int i = threadIdx.x; i < Config::kTileQ * 16; i += 32 * Config::kWarps) {
      const int row = i / 16, k = i % 16;
      uint4 first = make_uint4(0u, 0u, 0u, 0u), second = first;
      if (k < kSteps) {
        const uint4 *from = reinterpret_cast<const uint4 *>(rows.queryRow(rows.clamped(row)) + k * 16);
        first = from[0];
        second = from[1];
      }
      unsigned pairs[8] = {first.x, first.y, first.z, first.w, second.x, second.y, second.z, second.w};
      if constexpr (!kFits) {
        float largest = 0.f;
#pragma unroll
        for (int p = 0; p < 8; ++p)
          largest = fmaxf(largest, largestOfPair<Query>(pairs[p]));
#pragma unroll
        for (int lanes = 1; lanes < 16; lanes *= 2)
          largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, lanes));
        const RowUnit unit(largest);
#pragma unroll
        for (int p = 0; p < 8; ++p)
          pairs[p] = fitPair<Query>(pairs[p], unit.factor);
        if (k == 0)
          reinterpret_cast<float *>(shared + Layout::kUnitOffset)[row] = unit.inverse;
      }
      if (k < kSteps) {
        const auto put = [&](int column, int p) {
          *reinterpret_cast<uint4 *>(shared + Layout::kQueryOffset +
                                     Layout::QueryRows::offset(row, 2 * k + column)) =
              make_uint4(pairs[p], pairs[p + 2], pairs[p + 4], pairs[p + 6]);
        };
        put(0, 0);
        put(1, 1);
      }
    }
  }
  template <class Config, class Rows>
  __device__ __forceinline__ void takeUnits(const Rows &rows, const char *shared) {
    if constexpr (!kFits) {
      const float *units = reinterpret_cast<const float *>(shared + SharedLayout<Config>::kUnitOffset);
      Fitted::setInverse({units[rows.row(0)], units[rows.row(1)]});
    }
  }
};

} // namespace deft::sm80
