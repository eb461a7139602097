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
  float maximum[2] = {-kInfinity, -kInfinity};
  float sum[2] = {0.f, 0.f};

  /// Turns scores into weights and rescales what is there already.
  template <int kTiles>
  __device__ __forceinline__ void weigh(sm80::OnlineSoftmax &softmax, float (&s)[kTiles][4]) {
    if constexpr (Variant::kSigmoid) {
#pragma unroll
      for (int n = 0; n < kTiles; ++n) {
#pragma unroll
        for (int c = 0; c < 4; ++c)
          s[n][c] = sm80::sigmoidWeight(s[n][c]);
      }
    } else {
      float rescale[2];
      softmax.step(s, rescale);
#pragma unroll
      for (int n = 0; n < kColumnTiles; ++n) {
#pragma unroll
        for (int c = 0; c < 4; ++c)
          out[n][c] *= rescale[c / 2];
      }
    }
  }

  __device__ __forceinline__ void finish(sm80::OnlineSoftmax &softmax) {
    if constexpr (!Variant::kSigmoid)
      softmax.finish();
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      maximum[r] = softmax.maximum[r];
      sum[r] = softmax.sum[r];
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
    const float shift = top == -kInfinity ? 0.f : top * Rows::kUnit;
    return ptx::exp2Fast(fmaf(from, Rows::kUnit, -shift));
  }

  /// What makes row half `r` an average. Sigmoid's sums stay sums.
  __device__ __forceinline__ float normalizer(int r) const {
    return Variant::kSigmoid ? 1.f : sum[r] > 0.f ? 1.f / sum[r] : 0.f;
  }

  /// Natural logarithm of the sum of exponentials; -inf where no key was seen.
  __device__ __forceinline__ float lse(int r) const {
    const float shift = maximum[r] == -kInfinity ? 0.f : maximum[r] * Rows::kUnit;
    return (shift + ptx::log2Fast(sum[r])) * kLn2;
  }
};

} // namespace deft::sm90
