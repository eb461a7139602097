#pragma once

#include "deft/common/sigmoid_weight.cuh"
#include "deft/common/warp_rows.cuh"

/// Turns scores into weights, for a warp's 16 rows and the tiles of its own warpgroup.
namespace deft::sm90_latent {

/// Weights are relative to a row's reference, a power of two. The other warpgroup has its own references; a
/// factor converts its weights to ours without rounding.
template <class Config, class Variant, class Value = typename Config::Value> class RowWeights {
  using Rows = WarpRows<Config, Variant>;

public:
  /// Turns the scores of a warp's tile into weights. If a weight would exceed the largest allowed one, the
  /// references follow the rows' maxima. Then it returns true in the whole warp, and the earlier sums must be
  /// multiplied by `factor`. `common` of the row must still be added to its scores.
  __device__ __forceinline__ bool weighTile(Fragment<8> &s, const float (&common)[2], float (&factor)[2]) {
    if constexpr (Variant::kSigmoid) {
      s.forEach([](float &x, int, int) { x = sigmoidWeight(x); });
      return false;
    } else {
      float top[2];
      findTop(s, common, top);
      const bool grows = hasToGrow(top);
      if (grows) { // only now does a thread need the maximum of the whole row
#pragma unroll
        for (int r = 0; r < 2; ++r)
          top[r] = largestOfRow(top[r]);
        grow(top, factor);
      }
      weigh(s, common, sum_);
      return grows;
    }
  }

  /// Call it before you use the other warpgroup's weights, which are relative to `references`. Where our
  /// references are lower, they rise to these. For the result and `factor`, see weighTile().
  __device__ __forceinline__ bool meet(const float (&references)[2], float (&factor)[2]) {
    const bool grows = __any_sync(~0u, references[0] > reference_[0] || references[1] > reference_[1]);
    if (grows)
      follow(references, 0.f, factor);
    return grows;
  }
  /// After meet(): the factor that converts the other warpgroup's weights of a row to our reference.
  __device__ __forceinline__ float factorOf(int r, float reference) const {
    return ptx::exp2Fast(reference - shiftOf(reference_[r]));
  }

  // The parts of weighTile(). In units of few rows, several warps share a row and meet between the parts.

  /// Finds a row's largest score among this thread's columns, in base 2.
  template <int kTiles>
  static __device__ __forceinline__ void findTop(const Fragment<kTiles> &s, const float (&common)[2],
                                                 float (&top)[2]) {
#pragma unroll
    for (int r = 0; r < 2; ++r)
      top[r] = (s.largest(r) + common[r]) * Rows::kUnit;
  }
  /// Whether a reference of the warp has to grow. Each thread checks the `top` of its own columns. Before the
  /// first key a reference is -inf. The top of a hidden row is -inf, too. Their difference is NaN, so the
  /// reference does not grow.
  __device__ __forceinline__ bool hasToGrow(const float (&top)[2]) const {
    return __any_sync(~0u, top[0] - reference_[0] > kMostBits || top[1] - reference_[1] > kMostBits);
  }
  /// Raises references to the rows' maxima `top`. For `factor`, see weighTile().
  __device__ __forceinline__ void grow(const float (&top)[2], float (&factor)[2]) {
    follow(top, kMostBits, factor);
  }
  /// Turns scores into weights with the present references, and adds the weights to this thread's `sum`.
  template <int kTiles>
  __device__ __forceinline__ void weigh(Fragment<kTiles> &s, const float (&common)[2],
                                        float (&sum)[2]) const {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float shift = shiftOf(reference_[r]) - common[r] * Rows::kUnit;
      s.forEachOfRow(r, [&](float &x) {
        x = ptx::exp2Fast(fmaf(x, Rows::kUnit, -shift));
        sum[r] += x;
      });
    }
  }
  /// Adds the result of weigh() to the sums of the rows.
  __device__ __forceinline__ void add(const float (&sum)[2]) {
#pragma unroll
    for (int r = 0; r < 2; ++r)
      sum_[r] += sum[r];
  }

  /// Adds up the sums of a row's four threads.
  __device__ __forceinline__ void finish() {
#pragma unroll
    for (int r = 0; r < 2; ++r)
      sum_[r] = sumOfRow(sum_[r]);
  }
  /// A row's result, after finish().
  struct Total {
    float scale; ///< the factor of a warpgroup's sums in the average over both warpgroups' tiles
    float lse;   ///< the log-sum-exp
  };
  __device__ __forceinline__ Total with(int r, float otherReference, float otherSum) const {
    return total(reference_[r], sum_[r], otherReference, otherSum);
  }
  static __device__ __forceinline__ Total total(float reference, float ownSum, float otherReference,
                                                float otherSum) {
    if constexpr (Variant::kSigmoid)
      return {1.f, 0.f};
    const float shift = shiftOf(fmaxf(reference, otherReference));
    const float own = ptx::exp2Fast(reference - shift);
    const float sum = ownSum * own + otherSum * ptx::exp2Fast(otherReference - shift);
    return {sum > 0.f ? own * ptx::reciprocalFast(sum) : 0.f, (shift + ptx::log2Fast(sum)) * kLn2};
  }

  __device__ __forceinline__ float reference(int r) const { return reference_[r]; }
  __device__ __forceinline__ float sum(int r) const { return sum_[r]; }

private:
  /// The largest allowed distance of a score above the reference.
  static constexpr float kMostBits = kWeightBits<Value>;

  /// Raises references that are more than `most` below `to`. Each row decides for itself, so that its bits do
  /// not depend on other rows.
  __device__ __forceinline__ void follow(const float (&to)[2], float most, float (&factor)[2]) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float reference = to[r] - reference_[r] > most ? ceilf(to[r]) : reference_[r];
      factor[r] = reference == reference_[r] ? 1.f : ptx::exp2Fast(reference_[r] - reference);
      sum_[r] *= factor[r];
      reference_[r] = reference;
    }
  }

  /// A row that has not seen a key yet subtracts 0, since -inf minus -inf is NaN.
  static __device__ __forceinline__ float shiftOf(float reference) {
    return reference == -kInfinity ? 0.f : reference;
  }

  float reference_[2] = {-kInfinity, -kInfinity}; ///< base-2 exponent, a whole number
  float sum_[2] = {0.f, 0.f};                     ///< over this thread's columns only, until finish()
};

} // namespace deft::sm90_latent
