#pragma once

#include "deft/types.cuh"

/// cap * tanh(rate * x) without special functions, for small x.
namespace deft {

/// Special functions come at a sixteenth of the rate of multiply-adds, and a capped score would need three
/// with the one of its weight: more time than its products take. Where |rate * x| < 0.43, which is where
/// scores are that a cap is not meant for, a polynomial of x * x gives tanh to 1e-5 of itself.
class CappedScore {
public:
  CappedScore() = default;

  __device__ __forceinline__ CappedScore(float cap, float rate) {
    constexpr float kNear = 0.1875f; // of (rate * x)^2
    constexpr float kSeries[] = {0.9999904f, -0.33238906f, 0.11943865f};
    const float square = rate * rate, bound = kNear / square;
    // place() is x * x, shifted so that what is near lies between two powers of two, and all else beyond.
    const float least = __int_as_float((__float_as_int(bound) & kExponent) + kExponentOne);
    offset_ = 2.f * least - bound;
    const float second = kSeries[2] * square * square;
    const float first = kSeries[1] * square - 2.f * second * offset_;
    const float none = kSeries[0] - (kSeries[1] * square - second * offset_) * offset_;
    const float slope = cap * rate;
    none_ = none * slope;
    first_ = first * slope;
    second_ = second * slope;
    beyond_ = ~__float_as_int(least) & kExponent;
    limit_ = 2.f * least;
    if (bound > 1e30f) { // no score comes near the cap, and the series would leave f32
      offset_ = first_ = second_ = 0.f;
      none_ = slope;
      beyond_ = 0;
      limit_ = kInfinity;
    } else if (!(bound > 1e-12f)) { // no x is near
      offset_ = 1.f;
      beyond_ = kExponent;
      limit_ = 0.f;
    }
  }

  /// A multiply-add takes one operand from the registers that a warp shares, and the compiler would put all
  /// coefficients there, and each back for each score. `own` gives its argument as a thread's own value.
  template <class Own> __device__ __forceinline__ void keep(Own &&own) { second_ = own(second_); }

  /// Bits that are joined by `or` over many x before they are asked.
  __device__ __forceinline__ int place(float x) const { return __float_as_int(fmaf(x, x, offset_)); }
  __device__ __forceinline__ bool isBeyond(int places) const { return (places & beyond_) != 0; }

  /// Whether near() holds; isBeyond() of one place says the opposite.
  __device__ __forceinline__ bool isNear(float x) const { return fmaf(x, x, offset_) < limit_; }
  __device__ __forceinline__ float near(float x) const {
    const float t = fmaf(x, x, offset_);
    return x * fmaf(fmaf(second_, t, first_), t, none_);
  }

private:
  static constexpr int kExponent = 0x7f800000, kExponentOne = 0x00800000;
  float offset_, none_, first_, second_, limit_;
  int beyond_;
};

} // namespace deft
