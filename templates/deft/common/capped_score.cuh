#pragma once

#include "deft/types.cuh"

/// cap * tanh(rate * x) without special functions, if x is not large.
///
/// Special functions have a sixteenth of the throughput of multiply-adds. A capped score would need three,
/// with the one for its weight: more time than its products take. A polynomial of x * x suffices for scores
/// well below the cap. The check for large x compares squares as integers, which order like non-negative
/// floats; one instruction compares three of them.
namespace deft {

__device__ __forceinline__ int largerSquare(int largest, float square) {
  return max(largest, __float_as_int(square));
}

/// For |rate * x| < 0.7; the error is at most 1e-5 of the score.
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
    bound_ = __fdividef(0.5f, square); // only a bound, as the other divisors here: an approximation is enough
    if (bound_ > 1e30f) {              // no score gets near the cap, and the series would overflow f32
      none_ = slope;
      first_ = second_ = third_ = 0.f;
      bound_ = kInfinity;
    } else if (!(bound_ > 1e-12f)) { // no x is near
      bound_ = 0.f;
    }
  }

  /// One operand of a multiply-add may be a uniform register. The compiler would put all coefficients there
  /// and copy each one back for each score. `own` returns its argument as a thread's own value.
  template <class Own> __device__ __forceinline__ void keep(Own &&own) { third_ = own(third_); }

  __device__ __forceinline__ bool isNear(float square) const { return square < bound_; }
  __device__ __forceinline__ float near(float x, float square) const {
    return x * fmaf(fmaf(fmaf(third_, square, second_), square, first_), square, none_);
  }

private:
  float none_, first_, second_, third_, bound_;
};

/// For |rate * x| < 0.22 and scores below 16, in base 2. The error is at most 4e-4, or 4.6e-6 of the cap if
/// that is less. Valid only while weights stay within the slack of their reference for either sign of x: then
/// no maximum is needed.
class SmallScore {
public:
  SmallScore() = default;

  __device__ __forceinline__ SmallScore(float cap, float rate) {
    const float slope = cap * rate;
    // A linear and a cubic term, which minimise the largest error of tanh in this range.
    const float x = fminf(kMostOfCap, __fdividef(kMost, fabsf(cap))), end = x * x;
    none_ = (1.f - end * end * (1.f / 24.f - 0.025f * end)) * kLog2e * slope;
    first_ = (-1.f / 3.f + end * (1.f / 6.f - 0.072f * end)) * kLog2e * rate * rate * slope;
    square_ = slope * slope;
    most_ = fabsf(first_) < kInfinity ? fminf(kMostOfCap * fabsf(cap), kMost) : 0.f;
  }

  /// Whether all scores are small if the squares of their products are at most `largest`, and below `room`,
  /// the largest score with an allowed weight. False if `room` is -inf.
  __device__ __forceinline__ bool isSmall(int largest, float room) const {
    const float most = fminf(fmaxf(room, 0.f), most_);
    return __int_as_float(largest) * square_ < most * most;
  }
  /// The score's exponent minus `shift`.
  __device__ __forceinline__ float exponent(float x, float square, float shift) const {
    return fmaf(x, fmaf(first_, square, none_), -shift);
  }

private:
  static constexpr float kMostOfCap = 0.223607f, kMost = 16.f;

  float none_, first_;
  // For scores without the cap: the factor from x * x to the square, and the largest allowed score.
  float square_, most_;
};

} // namespace deft
