#pragma once

#include "deft/common/sigmoid_weight.cuh"
#include "deft/common/warp_rows.cuh"

/// From scores to weights, for a warp's 16 rows and the tiles of its own warpgroup.
namespace deft::sm90_latent {

/// Weights are relative to a row's reference, a power of two, so that the other warpgroup's weights, which
/// have references of their own, become ours by a factor that rounds nothing.
template <class Config, class Variant> class RowWeights {
  using Rows = WarpRows<Config, Variant>;
  using Value = typename Config::Value;

public:
  /// Turns the scores of a tile into weights. Where some would pass the largest weight, references follow the
  /// rows' maxima, and what has been summed up before is to be multiplied by `factor`: true then, in the
  /// whole warp. `common` is still to be added to a row's scores.
  __device__ __forceinline__ bool weigh(Fragment<8> &s, const float (&common)[2], float (&factor)[2]) {
    if constexpr (Variant::kSigmoid) {
      s.forEach([](float &x, int, int) { x = sigmoidWeight(x); });
      return false;
    } else {
      float top[2];
#pragma unroll
      for (int r = 0; r < 2; ++r)
        top[r] = (s.largest(r) + common[r]) * Rows::kUnit;
      // Before the first key the reference is -inf, and so is a hidden row's top: their difference is no
      // number. A thread asks for its own columns: the row's maximum is needed only where something grows.
      const bool grows =
          __any_sync(~0u, top[0] - reference_[0] > kMostBits || top[1] - reference_[1] > kMostBits);
      if (grows) {
#pragma unroll
        for (int r = 0; r < 2; ++r)
          top[r] = largestOfRow(top[r]);
        follow(top, kMostBits, factor);
      }
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const float shift = shiftOf(reference_[r]) - common[r] * Rows::kUnit;
        s.forEachOfRow(r, [&](float &x) {
          x = ptx::exp2Fast(fmaf(x, Rows::kUnit, -shift));
          sum_[r] += x;
        });
      }
      return grows;
    }
  }

  /// Before the other warpgroup's weights of `references` are used: references of ours that are lower follow,
  /// as in weigh().
  __device__ __forceinline__ bool meet(const float (&references)[2], float (&factor)[2]) {
    const bool grows = __any_sync(~0u, references[0] > reference_[0] || references[1] > reference_[1]);
    if (grows)
      follow(references, 0.f, factor);
    return grows;
  }
  /// What the other warpgroup's weights of a row are then to be multiplied by.
  __device__ __forceinline__ float factorOf(int r, float reference) const {
    return ptx::exp2Fast(reference - shiftOf(reference_[r]));
  }

  /// Joins the four threads of a row.
  __device__ __forceinline__ void finish() {
#pragma unroll
    for (int r = 0; r < 2; ++r)
      sum_[r] = sumOfRow(sum_[r]);
  }
  /// What makes a row an average of both warpgroups' tiles, and its logarithm, once both have finished.
  struct Total {
    float scale, lse;
  };
  __device__ __forceinline__ Total with(int r, float otherReference, float otherSum) const {
    if constexpr (Variant::kSigmoid)
      return {1.f, 0.f};
    const float shift = shiftOf(fmaxf(reference_[r], otherReference));
    const float own = ptx::exp2Fast(reference_[r] - shift);
    const float sum = sum_[r] * own + otherSum * ptx::exp2Fast(otherReference - shift);
    return {sum > 0.f ? own * ptx::reciprocalFast(sum) : 0.f, (shift + ptx::log2Fast(sum)) * kLn2};
  }

  __device__ __forceinline__ float reference(int r) const { return reference_[r]; }
  __device__ __forceinline__ float sum(int r) const { return sum_[r]; }

private:
  /// How far a score may lie above the reference.
  static constexpr float kMostBits = kWeightBits<Value>;

  /// References that lie further below than `most`. Each row is asked by itself, so that its bits do not
  /// depend on other rows.
  __device__ __forceinline__ void follow(const float (&to)[2], float most, float (&factor)[2]) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float reference = to[r] - reference_[r] > most ? ceilf(to[r]) : reference_[r];
      factor[r] = reference == reference_[r] ? 1.f : ptx::exp2Fast(reference_[r] - reference);
      sum_[r] *= factor[r];
      reference_[r] = reference;
    }
  }

  /// A row that has seen no key yet subtracts 0, not -inf: exp2(-inf + inf) would be NaN for good.
  static __device__ __forceinline__ float shiftOf(float reference) {
    return reference == -kInfinity ? 0.f : reference;
  }

  float reference_[2] = {-kInfinity, -kInfinity}; ///< to base 2, a whole number
  float sum_[2] = {0.f, 0.f};                     ///< of this thread's columns only, until the end
};

} // namespace deft::sm90_latent
