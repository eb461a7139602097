#pragma once

#include "deft/sm80/softmax.cuh"
#include "deft/sm90/layout.cuh"

/// The running sums of a warp's 16 rows, and how a group of scores enters them.
namespace deft::sm90 {

template <class Config, class Variant> struct WarpSums {
  using Rows = WarpRows<Config, Variant>;
  using Element = typename Config::Element;
  static constexpr int kColumnTiles = Config::kHeadDim / 8;

  float out[kColumnTiles][4] = {};
  float maximum[2] = {-kInfinity, -kInfinity}; ///< what weights are relative to
  float sum[2] = {0.f, 0.f};                   ///< of this thread's columns only, until the end

  /// How far a score may lie above the reference.
  static constexpr float kSlack = kWeightBits<Element> / Rows::kUnit;

  /// How far from 0 the scores of a row's first tokens, so many eights, may lie for 0 to be its reference.
  /// The weights of 64 or 16 tokens then come to more than 1, as where the reference is the row's largest
  /// score, so that f16 loses no larger share by later tokens whose weights it cannot tell from 0. Not where
  /// these are cut: a row that sees a single token has its value to the last bit, by a weight of 1. In a
  /// unit's first tile the weights are asked instead (refer).
  template <int kTiles> static constexpr float kFirstRoom = kTiles == 8 ? 4.f : 2.7f;

  /// weigh() of products that no cap has been put on yet: false where it has to be done the other way. Small
  /// scores cannot grow beyond the reference, so that no maximum is looked for, and cap and weight share a
  /// multiply-add. `largest` is FormedScores::findLargest's; where the tile is cut, `hide` makes exponents of
  /// what a row does not see -inf, and a row that `sees` nothing of it is not asked.
  /// `isFirst`: it is the unit's first tile.
  template <class Forms, class Sees, class Hide>
  __device__ __forceinline__ bool weighSmall(const Forms &forms, const int (&largest)[2], float (&s)[8][4],
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
      forEachScore(s, [&](float &x, int r, int) { x = exponent(x, r); });
      hide(s);
      forEachScore(s, [&](float &x, int r, int) { weigh(x, x, r); });
    } else {
      forEachScore(s, [&](float &x, int r, int) { weigh(x, exponent(x, r), r); });
      if (isFirst)
        refer(s);
    }
    return true;
  }

  /// The same of 16 tokens: so few weights are made while it is asked whether they may be.
  template <class Forms, class Sees, class Hide>
  __device__ __forceinline__ bool weighSmall(const Forms &forms, const int (&largest)[2], float (&s)[2][4],
                                             bool cut, Sees &&sees, Hide &&hide) {
    float room[2], shift[2], weights[2][4];
#pragma unroll
    for (int r = 0; r < 2; ++r) { // without branches
      room[r] = maximum[r] == -kInfinity ? (cut ? -kInfinity : kFirstRoom<2>) : maximum[r] + kSlack;
      room[r] = cut & !sees(r) ? kInfinity : room[r];
      shift[r] = shiftOf(maximum[r]);
    }
#pragma unroll
    for (int n = 0; n < 2; ++n) {
#pragma unroll
      for (int c = 0; c < 4; ++c)
        weights[n][c] = forms.small().exponent(s[n][c], s[n][c] * s[n][c], shift[c / 2]);
    }
    if (cut)
      hide(weights);
    forEachScore(weights, [](float &x, int, int) {
      x = ptx::exp2Fast(x);
      asm volatile("" : "+f"(x)); // not behind the answer
    });
    if (!forms.areSmall(largest, fminf(room[0], room[1])))
      return false;
#pragma unroll
    for (int n = 0; n < 2; ++n) {
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        s[n][c] = weights[n][c];
        sum[c / 2] += s[n][c];
      }
    }
#pragma unroll
    for (int r = 0; r < 2; ++r)
      maximum[r] = maximum[r] == -kInfinity && !cut ? 0.f : maximum[r];
    return true;
  }

  /// Turns scores into weights of the rows' reference, which follows the maximum only where weights
  /// would pass the slack; `factor` is then what earlier sums must be multiplied by. The same in the
  /// whole warp. `common` is still to be added to a row's scores.
  template <int kTiles>
  __device__ __forceinline__ bool weigh(float (&s)[kTiles][4], const float (&common)[2], float (&factor)[2]) {
    if constexpr (Variant::kSigmoid) {
#pragma unroll
      for (int n = 0; n < kTiles; ++n) {
#pragma unroll
        for (int c = 0; c < 4; ++c)
          s[n][c] = sm80::sigmoidWeight(s[n][c]);
      }
      return false;
    } else {
      float top[2];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        top[r] = fmaxf(s[0][2 * r], s[0][2 * r + 1]);
#pragma unroll
        for (int n = 1; n < kTiles; ++n)
          top[r] = fmaxf(top[r], fmaxf(s[n][2 * r], s[n][2 * r + 1]));
        if constexpr (Rows::kRises) {
          top[r] += common[r];
          joinTop(top[r]);
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
            joinTop(top[r]);
          const float reference = fmaxf(maximum[r], top[r]);
          factor[r] = WarpSums::factor(maximum[r], reference);
          sum[r] *= factor[r];
          maximum[r] = reference;
        }
        float shift = shiftOf(maximum[r]);
        if constexpr (Rows::kRises)
          shift = fmaf(common[r], -Rows::kUnit, shift);
#pragma unroll
        for (int n = 0; n < kTiles; ++n) {
#pragma unroll
          for (int c = 2 * r; c < 2 * r + 2; ++c) {
            s[n][c] = ptx::exp2Fast(fmaf(s[n][c], Rows::kUnit, -shift));
            sum[r] += s[n][c];
          }
        }
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
  __device__ __forceinline__ void refer(float (&weights)[8][4]) {
    float total[2];
    bool isFar[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      total[r] = sum[r];
      joinSum(total[r]);
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
    forEachScore(weights, [&](float &x, int r, int) { x *= factor[r]; });
  }

  /// Of the four threads of a row; so is joinTop.
  static __device__ __forceinline__ void joinSum(float &sum) {
    sum += __shfl_xor_sync(~0u, sum, 1);
    sum += __shfl_xor_sync(~0u, sum, 2);
  }
  static __device__ __forceinline__ void joinTop(float &top) {
    top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
    top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
  }

  __device__ __forceinline__ void rescale(const float (&factor)[2]) {
#pragma unroll
    for (int n = 0; n < kColumnTiles; ++n) {
#pragma unroll
      for (int c = 0; c < 4; ++c)
        out[n][c] *= factor[c / 2];
    }
  }

  /// Joins the four threads of a row.
  __device__ __forceinline__ void finish() {
    if constexpr (!Variant::kSigmoid) {
#pragma unroll
      for (int r = 0; r < 2; ++r)
        joinSum(sum[r]);
    }
  }

  /// The weights of 16 tokens as the a operand of a k-step.
  static __device__ __forceinline__ void pack(const float (&low)[4], const float (&high)[4],
                                              unsigned (&p)[4]) {
    p[0] = ptx::pack2<Element>(low[0], low[1]);
    p[1] = ptx::pack2<Element>(low[2], low[3]);
    p[2] = ptx::pack2<Element>(high[0], high[1]);
    p[3] = ptx::pack2<Element>(high[2], high[3]);
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
