#pragma once

#include "deft/common/sigmoid_weight.cuh"
#include "deft/ptx/forget.cuh"
#include "deft/sm90/layout.cuh"

/// The running sums of a warp's 16 rows, and the step that adds a group of scores to them.
namespace deft::sm90 {

template <class Config, class Variant> struct WarpSums {
  using Rows = WarpRows<Config, Variant>;
  using Value = typename Config::Value;
  static constexpr int kColumnTiles = Config::kValueDim / 8;

  Fragment<kColumnTiles> out{};
  float maximum[2] = {-kInfinity, -kInfinity}; ///< the reference of the weights
  float sum[2] = {0.f, 0.f};                   ///< over this thread's columns only, until finish()

  /// The largest allowed distance of a score above the reference.
  static constexpr float kSlack = kWeightBits<Value> / Rows::kUnit;

  /// How far the scores of a row's first tokens (8 * kTiles of them) may be from 0 if 0 is to be its
  /// reference. The weights of 64 or 16 tokens then sum to more than 1, as with the largest score as
  /// reference. So f16 loses no larger share when later weights round to 0. Not used if these tokens are cut:
  /// a row that sees a single token must have a weight of 1, so that it returns its value exactly. In a
  /// unit's first tile, setReference checks the weights instead.
  template <int kTiles> static constexpr float kFirstRoom = kTiles == 8 ? 4.f : 2.7f;

  /// weigh() for products before the cap; false if the general way is needed. Small scores cannot exceed the
  /// reference, so no maximum is needed, and cap and weight share a multiply-add. `largest` comes from
  /// FormedScores::findLargest. If the tile is cut, `hide` sets the exponents of tokens that a row does not
  /// see to -inf, and a row that sees none of them (`sees`) is not checked. `isFirst`: it is the unit's first
  /// tile.
  template <class Forms, class Sees, class Hide>
  __device__ __forceinline__ bool weighSmall(const Forms &forms, const int (&largest)[2], Fragment<8> &s,
                                             bool cut, bool isFirst, Sees &&sees, Hide &&hide) {
    const auto room = [&](int r) {
      return maximum[r] > -kInfinity ? maximum[r] + kSlack
             : !cut                  ? (isFirst ? kInfinity : kFirstRoom<8>)
             : sees(r)               ? -kInfinity
                                     : kInfinity;
    };
    if (!forms.areSmall(largest, fminf(room(0), room(1))))
      return false;
#pragma unroll
    for (int r = 0; r < 2; ++r)
      maximum[r] = maximum[r] == -kInfinity && !cut ? 0.f : maximum[r];
    const float shift[2] = {shiftOf(maximum[0]), shiftOf(maximum[1])};
    const auto exponent = [&](float x, int r) { return forms.small().exponent(x, x * x, shift[r]); };
    const auto weigh = [&](float &x, float exponent, int r) {
      x = ptx::exp2Fast(exponent);
      sum[r] += x;
    };
    if (cut) {
      s.forEach([&](float &x, int r, int) { x = exponent(x, r); });
      hide(s);
      s.forEach([&](float &x, int r, int) { weigh(x, x, r); });
    } else {
      s.forEach([&](float &x, int r, int) { weigh(x, exponent(x, r), r); });
      if (isFirst)
        setReference(s);
    }
    return true;
  }

  /// weighSmall() for 16 tokens: few enough to compute the weights while the check runs.
  template <class Forms, class Sees, class Hide>
  __device__ __forceinline__ bool weighSmall(const Forms &forms, const int (&largest)[2], Fragment<2> &s,
                                             bool cut, Sees &&sees, Hide &&hide) {
    float room[2], shift[2];
    Fragment<2> weights = s;
#pragma unroll
    for (int r = 0; r < 2; ++r) { // without branches
      room[r] = maximum[r] == -kInfinity ? (cut ? -kInfinity : kFirstRoom<2>) : maximum[r] + kSlack;
      room[r] = cut & !sees(r) ? kInfinity : room[r];
      shift[r] = shiftOf(maximum[r]);
    }
    weights.forEach([&](float &x, int r, int) { x = forms.small().exponent(x, x * x, shift[r]); });
    if (cut)
      hide(weights);
    weights.forEach([](float &x, int, int) {
      x = ptx::exp2Fast(x);
      ptx::forgetHere(x); // not after the check
    });
    if (!forms.areSmall(largest, fminf(room[0], room[1])))
      return false;
    s = weights;
    s.forEach([&](float weight, int r, int) { sum[r] += weight; });
#pragma unroll
    for (int r = 0; r < 2; ++r)
      maximum[r] = maximum[r] == -kInfinity && !cut ? 0.f : maximum[r];
    return true;
  }

  /// Turns scores into weights relative to the rows' reference. The reference follows the maximum only if
  /// weights would exceed the slack; earlier sums must then be multiplied by `factor`. The result is the same
  /// in the whole warp. `common` must still be added to a row's scores.
  template <int kTiles>
  __device__ __forceinline__ bool weigh(Fragment<kTiles> &s, const float (&common)[2], float (&factor)[2]) {
    if constexpr (Variant::kSigmoid) {
      s.forEach([](float &x, int, int) { x = sigmoidWeight(x); });
      return false;
    } else {
      float top[2];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        top[r] = s.largest(r);
        if constexpr (Rows::kRises) {
          top[r] += common[r];
          top[r] = largestOfRow(top[r]);
        }
      }
      // Before the first key the reference is -inf, and so is the top of a hidden row: their difference is
      // NaN. A thread checks only its own columns; the row's maximum is needed only if something grows. With
      // slopes that is frequent, and checking the maximum of all four threads is faster.
      const bool grows = __any_sync(~0u, top[0] - maximum[0] > kSlack || top[1] - maximum[1] > kSlack);
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        factor[r] = 1.f;
        if (grows) {
          if constexpr (!Rows::kRises)
            top[r] = largestOfRow(top[r]);
          const float reference = fmaxf(maximum[r], top[r]);
          factor[r] = WarpSums::factor(maximum[r], reference);
          sum[r] *= factor[r];
          maximum[r] = reference;
        }
        float shift = shiftOf(maximum[r]);
        if constexpr (Rows::kRises)
          shift = fmaf(common[r], -Rows::kUnit, shift);
        s.forEachOfRow(r, [&](float &x) {
          x = ptx::exp2Fast(fmaf(x, Rows::kUnit, -shift));
          sum[r] += x;
        });
      }
      return grows;
    }
  }

  /// The part of exponents that a reference subtracts. A row that has not seen a key yet subtracts 0, not
  /// -inf: exp2(-inf + inf) would stay NaN.
  static __device__ __forceinline__ float shiftOf(float reference) {
    return reference == -kInfinity ? 0.f : reference * Rows::kUnit;
  }

  /// Checks the first weights of all rows, relative to 0. If they sum to less than 1 or to too much for f16,
  /// changes the reference so that they sum to 1.
  __device__ __forceinline__ void setReference(Fragment<8> &weights) {
    float total[2];
    bool isFar[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      total[r] = sumOfRow(sum[r]);
      isFar[r] = !(total[r] >= 1.f && total[r] < 4096.f);
    }
    if (!__any_sync(~0u, isFar[0] || isFar[1]))
      return;
    float factor[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      factor[r] = isFar[r] ? ptx::reciprocalFast(total[r]) : 1.f;
      maximum[r] = isFar[r] ? ptx::log2Fast(total[r]) * kLn2 : maximum[r];
      sum[r] *= factor[r];
    }
    weights.scaleRows(factor);
  }

  /// Adds up the sums of a row's four threads.
  __device__ __forceinline__ void finish() {
    if constexpr (!Variant::kSigmoid) {
#pragma unroll
      for (int r = 0; r < 2; ++r)
        sum[r] = sumOfRow(sum[r]);
    }
  }

  /// The factor that converts sums with maximum `from` to sums with maximum `top`.
  static __device__ __forceinline__ float factor(float from, float top) {
    if constexpr (Variant::kSigmoid)
      return 1.f;
    const float shift = shiftOf(top);
    return ptx::exp2Fast(fmaf(from, Rows::kUnit, -shift));
  }

  /// The factor that makes row half `r` an average. Sigmoid's sums stay sums.
  __device__ __forceinline__ float normalizer(int r) const {
    return Variant::kSigmoid ? 1.f : sum[r] > 0.f ? ptx::reciprocalFast(sum[r]) : 0.f;
  }

  /// Natural logarithm of the sum of exponentials; -inf if the row saw no key.
  __device__ __forceinline__ float lse(int r) const {
    const float shift = shiftOf(maximum[r]);
    return (shift + ptx::log2Fast(sum[r])) * kLn2;
  }
};

} // namespace deft::sm90
