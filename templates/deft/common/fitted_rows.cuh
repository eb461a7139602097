#pragma once

#include "deft/common/fragment.cuh"
#include "deft/types.cuh"

/// Queries as f16 factors, for products with converted elements.
///
/// bf16 has exponents beyond those of f16. If the largest element of a row is too large, or so small that
/// others would lose bits, the row is multiplied by a power of two, and its products by the inverse. The
/// rounding that remains is at most 2^-23 of the row's largest element.
namespace deft {

/// The factors for a row whose largest element is `largest`.
struct RowUnit {
  float factor, inverse; ///< powers of two; 1 if the row fits unchanged

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

/// Inverse factors for the products of this thread's two rows. f16 needs none.
template <class Query> class FittedRows {
public:
  static constexpr bool kFits = kIsSame<Query, f16>;

  /// Fits the a operands of a warp's rows.
  template <int kSteps> __device__ __forceinline__ void fit(unsigned (&query)[kSteps][4]) {
    if constexpr (!kFits) {
      float inverse[2];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        float largest = 0.f;
#pragma unroll
        for (int k = 0; k < kSteps; ++k)
          largest =
              fmaxf(largest, fmaxf(largestOfPair<Query>(query[k][r]), largestOfPair<Query>(query[k][r + 2])));
        const RowUnit unit(largestOfRow(largest));
        inverse[r] = unit.inverse;
#pragma unroll
        for (int k = 0; k < kSteps; ++k) {
          query[k][r] = fitPair<Query>(query[k][r], unit.factor);
          query[k][r + 2] = fitPair<Query>(query[k][r + 2], unit.factor);
        }
      }
      setInverse(inverse);
    }
  }

  __device__ __forceinline__ void setInverse(const float (&inverse)[2]) {
    inverse_[0] = inverse[0];
    inverse_[1] = inverse[1];
    isAnyOther_ = __any_sync(~0u, inverse[0] != 1.f || inverse[1] != 1.f);
  }

  /// Restores the products of the original rows.
  template <int kTiles> __device__ __forceinline__ void restore(Fragment<kTiles> &products) const {
    if constexpr (!kFits)
      if (isAnyOther_)
        products.scaleRows(inverse_);
  }

private:
  float inverse_[2] = {1.f, 1.f};
  bool isAnyOther_ = false; ///< in the warp's rows
};

} // namespace deft
