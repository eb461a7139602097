#include <bit>
#include <cmath>
#include <limits>

#define __device__
#define __forceinline__ inline
static int __float_as_int(float a) { return std::bit_cast<int>(a); }
static float __int_as_float(int a) { return std::bit_cast<float>(a); }
using std::fmaf;
#include "deft/capped_score.cuh"

#include <gtest/gtest.h>

namespace deft {
namespace {

/// Over caps and scales: each x that is near has the value of the formula, and what is not near begins where
/// the series would leave it.
TEST(CappedScoreTest, IsTheFormulaWhereScoresAreSmall) {
  for (double cap : {0.01, 1.0, 5.5, 30.0, 50.0, 1000.0})
    for (double scale : {1.0, 0.0883883, 0.0625}) {
      const CappedScore score(static_cast<float>(cap), static_cast<float>(scale / cap));
      for (int i = -6000; i <= 6000; ++i) {
        const double share = i / 10000.0; // of the cap
        const float x = static_cast<float>(share * cap / scale);
        const double want = cap * std::tanh(scale / cap * x);
        if (std::abs(share) < 0.4329) {
          ASSERT_TRUE(!score.isBeyond(score.place(x)) && score.isNear(x))
              << cap << " " << scale << " " << share;
          ASSERT_NEAR(score.near(x), want, 1.1e-5 * std::abs(want)) << cap << " " << scale << " " << share;
        } else if (std::abs(share) > 0.4331) {
          ASSERT_TRUE(score.isBeyond(score.place(x)) && !score.isNear(x))
              << cap << " " << scale << " " << share;
        }
      }
    }
}

TEST(CappedScoreTest, OneFarScoreIsNoticedAmongNearOnes) {
  const CappedScore score(30.f, 1 / 30.f);
  int places = 0;
  for (float x = -12.f; x < 12.f; x += 0.37f)
    places |= score.place(x);
  EXPECT_FALSE(score.isBeyond(places));
  for (float far : {14.f, -100.f, 3e4f, 1e30f, std::numeric_limits<float>::infinity()})
    EXPECT_TRUE(score.isBeyond(places | score.place(far))) << far;
}

/// Where the series' coefficients would leave f32.
TEST(CappedScoreTest, ExtremeRatesAreLinesOrFar) {
  for (float rate : {1e-16f, 1e-20f, 1e-30f}) {
    const CappedScore score(1 / rate, rate);
    for (float x : {0.f, 1e-20f, 1.f, -300.f}) {
      EXPECT_TRUE(score.isNear(x)) << rate << " " << x;
      EXPECT_FLOAT_EQ(score.near(x), x) << rate;
    }
  }
  for (float rate : {1e10f, 1e30f, std::numeric_limits<float>::infinity(), std::nanf("")}) {
    const CappedScore score(1.f, rate);
    for (float x : {0.f, 1e-20f, 1.f})
      EXPECT_TRUE(score.isBeyond(score.place(x)) && !score.isNear(x)) << rate << " " << x;
  }
}

} // namespace
} // namespace deft
