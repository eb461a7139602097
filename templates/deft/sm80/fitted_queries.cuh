#pragma once

#include "deft/any_family/warp_rows.cuh"
#include "deft/sm80/shared_layout.cuh"

/// Queries as factors of products with converted keys: f16, in the order of dims in which a lane gets these.
///
/// A load of matrices gives a lane four neighbouring bytes, where of 16-bit elements it gives two and two
/// that are eight further on. So products are of another order of each 16 dims: what an instruction takes for
/// dims 2c, 2c + 1, 2c + 8 and 2c + 9 are 4c to 4c + 3 of q and of k.
///
/// bf16 has exponents that f16 has not. The largest of a row is looked for, and where that is too large or
/// so small that others would lose bits, the row is multiplied by a power of two, and its products by the
/// inverse. What is then still rounded is 2^-23 of the row's largest element and less.
namespace deft::sm80 {

/// Of a row whose largest element is `largest`.
struct RowUnit {
  float factor, inverse; ///< powers of two; 1 where the row fits as it is

  __device__ __forceinline__ explicit RowUnit(float largest) : factor(1.f), inverse(1.f) {
    if (largest >= 0.25f && largest < 32768.f)
      return;
    const int exponent = max(1, min(253, __float_as_int(largest) >> 23));
    factor = __int_as_float((254 - exponent) << 23);
    inverse = __int_as_float(exponent << 23);
  }
};

template <class Query> __device__ __forceinline__ float largestOfPair(unsigned pair) {
  const float2 x = ptx::unpack2<Query>(pair);
  return fmaxf(fabsf(x.x), fabsf(x.y));
}
template <class Query> __device__ __forceinline__ unsigned fitPair(unsigned pair, float factor) {
  const float2 x = ptx::unpack2<Query>(pair);
  return ptx::pack2<f16>(x.x * factor, x.y * factor);
}

/// The products' inverse factors of this thread's two rows. f16 fits as it is.
template <class Query> class FittedQueries {
  static constexpr bool kFits = kIsSame<Query, f16>;

public:
  /// The warp's queries in registers, straight from global memory.
  template <class Rows, int kSteps>
  __device__ __forceinline__ void load(const Rows &rows, int lane, unsigned (&query)[kSteps][4]) {
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
    if constexpr (!kFits) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        float largest = 0.f;
#pragma unroll
        for (int k = 0; k < kSteps; ++k)
          largest =
              fmaxf(largest, fmaxf(largestOfPair<Query>(query[k][r]), largestOfPair<Query>(query[k][r + 2])));
        const RowUnit unit(largestOfRow(largest));
        inverse_[r] = unit.inverse;
#pragma unroll
        for (int k = 0; k < kSteps; ++k) {
          query[k][r] = fitPair<Query>(query[k][r], unit.factor);
          query[k][r + 2] = fitPair<Query>(query[k][r + 2], unit.factor);
        }
      }
      note();
    }
  }

  /// The block's queries in shared memory, as ldmatrix finds them; half a warp takes a row. Everybody may
  /// read them, and take units, after the block's next barrier.
  template <class Config, class Rows>
  static __device__ __forceinline__ void store(const Rows &rows, char *shared) {
    using Layout = SharedLayout<Config>;
    constexpr int kSteps = Config::kKeyDim / 16;
    static_assert(kSteps <= 16, "a lane has 16 elements");
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
#pragma unroll
      for (int r = 0; r < 2; ++r)
        inverse_[r] =
            reinterpret_cast<const float *>(shared + SharedLayout<Config>::kUnitOffset)[rows.row(r)];
      note();
    }
  }

  /// Products as they would be of the rows as they came.
  template <int kTiles> __device__ __forceinline__ void restore(Fragment<kTiles> &products) const {
    if constexpr (!kFits)
      if (isAnyOther_)
        products.scaleRows(inverse_);
  }

private:
  __device__ __forceinline__ void note() {
    isAnyOther_ = __any_sync(~0u, inverse_[0] != 1.f || inverse_[1] != 1.f);
  }

  float inverse_[2] = {1.f, 1.f};
  bool isAnyOther_ = false; ///< of the warp's rows
};

} // namespace deft::sm80
