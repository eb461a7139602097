#pragma once

#include "deft/common/sigmoid_weight.cuh"
#include "deft/ptx/forget.cuh"
#include "deft/sm90/layout.cuh"

/// The running sums of a warp's 16 rows, and how a group of scores enters them.
namespace deft::sm90 {

template <class Config, class Variant> struct WarpSums {
  using Rows = WarpRows<Config, Variant>;
  using Value = typename Config::Value;
  static constexpr int kColumnTiles = Config::kValueDim / 8;

  Fragment<kColumnTiles> out{};
  float maximum[2] = {-kInfinity, -kInfinity}; ///< what weights are relative to
  float sum[2] = {0.f, 0.f};                   ///< of this thread's columns only, until the end

  /// How far a score may lie above the reference.
  static constexpr float kSlack = kWeightBits<Value> / Rows::kUnit;

  /// How far from 0 the scores of a row's first tokens, so many eights, may lie for 0 to be its reference.
  /// The weights of 64 or 16 tokens then come to more than 1, as where the reference is the row's largest
  /// score, so that f16 loses no larger share by later tokens whose weights it cannot tell from 0. Not where
  /// these are cut: a row that sees a single token has its value to the last bit, by a weight of 1. In a
  /// unit's first tile the weights are asked instead (setReference).
  template <int kTiles> static constexpr float kFirstRoom = kTiles == 8 ? 4.f : 2.7f;

  /// weigh() of products that no cap has been put on yet: false where it has to be done the other way. Small
  /// scores cannot grow beyond the reference, so that no maximum is looked for, and cap and weight share a
  /// multiply-add. `largest` is FormedScores::findLargest's; where the tile is cut, `hide` makes exponents of
  /// what a row does not see -inf, and a row that `sees` nothing of it is not asked.
  /// `isFirst`: it is the unit's first tile.
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

  /// weighSmall() of 16 tokens: so few weights are made while it is asked whether they may be.
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
      ptx::forgetHere(x); // not behind the answer
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

  /// Turns scores into weights of the rows' reference, which follows the maximum only where weights
  /// would pass the slack; `factor` is then what earlier sums must be multiplied by. The same in the
  /// whole warp. `common` is still to be added to a row's scores.
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
      // Before the first key the reference is -inf, and so is a hidden row's top: their difference is no
      // number. A thread asks for its own columns: the row's maximum is needed only where something grows.
      // That is often so with slopes, and sooner said with what all four threads have.
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

  /// What a reference takes from exponents. A row that has seen no key yet subtracts 0, not -inf:
  /// exp2(-inf + inf) would be NaN for good.
  static __device__ __forceinline__ float shiftOf(float reference) {
    return reference == -kInfinity ? 0.f : reference * Rows::kUnit;
  }

  /// Of the first weights of all rows, by a reference of 0: where they come to less than 1, or too much for
  /// f16, the reference is made one by which they come to 1.
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

  /// Joins the four threads of a row.
  __device__ __forceinline__ void finish() {
    if constexpr (!Variant::kSigmoid) {
#pragma unroll
      for (int r = 0; r < 2; ++r)
        sum[r] = sumOfRow(sum[r]);
    }
  }

  /// The factor that takes sums with maximum `from` to those with maximum `top`.
  static __device__ __forceinline__ float factor(float from, float top) {
    if constexpr (Variant::kSigmoid)
      return 1.f;
    const float shift = shiftOf(top);
    return ptx::exp2Fast(fmaf(from, Rows::kUnit, -shift));
  }

  /// What makes row half `r` an average. Sigmoid's sums stay sums.
  __device__ __forceinline__ float normalizer(int r) const {
    return Variant::kSigmoid ? 1.f : sum[r] > 0.f ? ptx::reciprocalFast(sum[r]) : 0.f;
  }

  /// Natural logarithm of the sum of exponentials; -inf where no key was seen.
  __device__ __forceinline__ float lse(int r) const {
    const float shift = shiftOf(maximum[r]);
    return (shift + ptx::log2Fast(sum[r])) * kLn2;
  }
};

} // namespace deft::sm90
