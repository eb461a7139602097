#pragma once

#include "deft/types.cuh"

/// cap * tanh(rate * x) without special functions, where x is not large.
///
/// Special functions come at a sixteenth of the rate of multiply-adds, and a capped score would need three
/// with the one of its weight: more time than its products take. A polynomial of x * x does where the score
/// is one that a cap is not meant for. How large x is at most is asked of squares as integers, which have the
/// order of floats that are not negative, and of which three are compared at once.
namespace deft {

__device__ __forceinline__ int largerSquare(int largest, float square) {
  return max(largest, __float_as_int(square));
}

/// |rate * x| < 0.7, to 1e-5 of the score.
class CappedScore {
public:
  CappedScore() = default;

  __device__ __forceinline__ CappedScore(float cap, float rate) {
    constexpr float kSeries[] = {0.9999928f, -0.33286613f, 0.12847962f, -0.037029361f};
    const float slope = cap * rate, square = rate * rate;
    none_ = kSeries[0] * slope;
    first_ = kSeries[1] * square * slope;
    second_ = kSeries[2] * square * square * slope;
    third_ = kSeries[3] * square * square * square * slope;
    bound_ = __fdividef(0.5f, square); // a bound, as all that is divided here: an approximation will do
    if (bound_ > 1e30f) {              // no score comes near the cap, and the series would leave f32
      none_ = slope;
      first_ = second_ = third_ = 0.f;
      bound_ = kInfinity;
    } else if (!(bound_ > 1e-12f)) { // no x is near
      bound_ = 0.f;
    }
  }

  /// A multiply-add takes one operand from the registers that a warp shares, and the compiler would put all
  /// coefficients there, and each back for each score. `own` gives its argument as a thread's own value.
  template <class Own> __device__ __forceinline__ void keep(Own &&own) { third_ = own(third_); }

  __device__ __forceinline__ bool isNear(float square) const { return square < bound_; }
  __device__ __forceinline__ float near(float x, float square) const {
    return x * fmaf(fmaf(fmaf(third_, square, second_), square, first_), square, none_);
  }

private:
  float none_, first_, second_, third_, bound_;
};

/// |rate * x| < 0.22 and scores below 16, to 4e-4, or 4.6e-6 of the cap where that is less; in base 2. Only
/// while weights stay within the slack of their reference whatever the sign of x: then no maximum is looked
/// for.
class SmallScore {
public:
  SmallScore() = default;

  __device__ __forceinline__ SmallScore(float cap, float rate) {
    const float slope = cap * rate;
    // A line and a cube, the nearest to tanh up to there by the largest error.
    const float x = fminf(kMostOfCap, __fdividef(kMost, fabsf(cap))), end = x * x;
    none_ = (1.f - end * end * (1.f / 24.f - 0.025f * end)) * kLog2e * slope;
    first_ = (-1.f / 3.f + end * (1.f / 6.f - 0.072f * end)) * kLog2e * rate * rate * slope;
    square_ = slope * slope;
    most_ = fabsf(first_) < kInfinity ? fminf(kMostOfCap * fabsf(cap), kMost) : 0.f;
  }

  /// Whether all scores are small of products whose squares are at most `largest`, and at most `room`, the
  /// largest one whose weight is allowed. Not when that is -inf.
  __device__ __forceinline__ bool isSmall(int largest, float room) const {
    const float most = fminf(fmaxf(room, 0.f), most_);
    return __int_as_float(largest) * square_ < most * most;
  }
  /// The score's exponent, less `shift`.
  __device__ __forceinline__ float exponent(float x, float square, float shift) const {
    return fmaf(x, fmaf(first_, square, none_), -shift);
  }

private:
  static constexpr float kMostOfCap = 0.223607f, kMost = 16.f;

  float none_, first_;
  // Of the score without a cap: by what x * x becomes its square, and what it may be at most.
  float square_, most_;
};

} // namespace deft
