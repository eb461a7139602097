#include "tests/device/Words.h"

#include "deft/common/capped_score.cuh"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace deft {
namespace {

/// Over caps and scales: each x that is near has the value of the formula, and what is not near begins where
/// the series would leave it.
TEST(CappedScoreTest, IsTheFormulaWhereScoresAreSmall) {
  for (double cap : {0.01, 1.0, 5.5, 30.0, 50.0, 150.0, 1000.0})
    for (double scale : {1.0, 0.0883883, 0.0625}) {
      const CappedScore score(static_cast<float>(cap), static_cast<float>(scale / cap));
      for (int i = -9000; i <= 9000; ++i) {
        const double share = i / 10000.0; // of the cap
        const float x = static_cast<float>(share * cap / scale);
        const double want = cap * std::tanh(scale / cap * x);
        if (std::abs(share) < 0.7070) {
          ASSERT_TRUE(score.isNear(x * x)) << cap << " " << scale << " " << share;
          ASSERT_NEAR(score.near(x, x * x), want, 0.8e-5 * std::abs(want))
              << cap << " " << scale << " " << share;
        } else if (std::abs(share) > 0.7072) {
          ASSERT_FALSE(score.isNear(x * x)) << cap << " " << scale << " " << share;
        }
      }
    }
}

TEST(CappedScoreTest, OneFarScoreIsNoticedAmongNearOnes) {
  const CappedScore score(30.f, 1 / 30.f);
  int largest = 0;
  for (float x = -20.f; x < 20.f; x += 0.37f)
    largest = largerSquare(largest, x * x);
  EXPECT_TRUE(score.isNear(__int_as_float(largest)));
  for (float far : {22.f, -100.f, 3e4f, 1e30f, std::numeric_limits<float>::infinity(), std::nanf("")})
    EXPECT_FALSE(score.isNear(__int_as_float(largerSquare(largest, far * far)))) << far;
}

/// Where the series' coefficients would leave f32.
TEST(CappedScoreTest, ExtremeRatesAreLinesOrFar) {
  for (float rate : {1e-16f, 1e-20f, 1e-30f}) {
    const CappedScore score(1 / rate, rate);
    for (float x : {0.f, 1e-20f, 1.f, -300.f}) {
      EXPECT_TRUE(score.isNear(x * x)) << rate << " " << x;
      EXPECT_FLOAT_EQ(score.near(x, x * x), x) << rate;
    }
  }
  for (float rate : {1e10f, 1e30f, std::numeric_limits<float>::infinity(), std::nanf("")}) {
    const CappedScore score(1.f, rate);
    for (float x : {0.f, 1e-20f, 1.f})
      EXPECT_FALSE(score.isNear(x * x)) << rate << " " << x;
  }
}

/// Over caps and scales: exponents are those of the formula as far as scores count as small.
TEST(SmallScoreTest, IsTheFormulaInBaseTwo) {
  for (double cap : {0.01, 1.0, 5.5, 30.0, 50.0, 150.0, 1000.0})
    for (double scale : {1.0, 0.0883883, -0.0625}) {
      const SmallScore score(static_cast<float>(cap), static_cast<float>(scale / cap));
      const float room = std::numeric_limits<float>::max();
      for (int i = -3000; i <= 3000; ++i) {
        const double share = i / 10000.0; // of the cap
        const float x = static_cast<float>(share * cap / scale);
        const double want = cap * std::tanh(scale / cap * x) * kLog2e - 3;
        const bool isSmall = score.isSmall(largerSquare(0, x * x), room);
        ASSERT_EQ(isSmall, std::abs(share) < std::min(std::sqrt(0.05), 16 / cap))
            << cap << " " << scale << " " << share;
        if (isSmall) {
          ASSERT_NEAR(score.exponent(x, x * x, 3.f), want, (std::min(4.6e-6 * cap, 4e-4) + 1e-6) * kLog2e)
              << cap << " " << scale << " " << share;
        }
      }
    }
}

/// No small score is larger than there is room, nor is any where there is none.
TEST(SmallScoreTest, SmallScoresLeaveRoom) {
  const float infinity = std::numeric_limits<float>::infinity();
  const SmallScore score(50.f, 0.1f / 50.f);
  for (float room : {1e-3f, 1.f, 7.f, 11.f})
    for (float x : {0.5f, -5.f, 30.f, -69.f, 71.f, 105.f, -115.f}) {
      const float largest = 50.f * std::tanh(0.1f / 50.f * std::abs(x));
      if (score.isSmall(largerSquare(0, x * x), room)) {
        EXPECT_LE(largest, room) << x;
      } else {
        EXPECT_GT(0.1f * std::abs(x) * 1.001f, std::min(room, 50.f * 0.2236f)) << x << " " << room;
      }
    }
  for (float room : {0.f, -1.f, -infinity})
    EXPECT_FALSE(score.isSmall(0, room)) << room;
  for (float far : {infinity, std::nanf("")})
    EXPECT_FALSE(score.isSmall(largerSquare(0, far * far), infinity)) << far;
}

/// Where coefficients leave f32 no score is small, and what counts as small has its exponent.
TEST(SmallScoreTest, ExtremeRatesAreRightOrNotSmall) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (float cap : {0.f, 1e-20f, 1.f, -30.f, 1e20f, infinity, std::nanf("")})
    for (float rate : {0.f, 1e-20f, 1e10f, 1e13f, 1e20f, infinity, std::nanf("")})
      for (float x : {0.f, 1e-20f, 1.f, -1e20f, infinity})
        if (const SmallScore score(cap, rate); score.isSmall(largerSquare(0, x * x), 100.f)) {
          const double want = double{cap} * std::tanh(double{rate} * x) * kLog2e;
          EXPECT_NEAR(score.exponent(x, x * x, 0.f), want, 1e-3) << cap << " " << rate << " " << x;
        }
  EXPECT_TRUE(SmallScore(1.f, 1e-20f).isSmall(largerSquare(0, 1.f), 100.f));
  for (float rate : {1e13f, infinity, std::nanf("")})
    EXPECT_FALSE(SmallScore(1.f, rate).isSmall(0, 100.f)) << rate;
}

} // namespace
} // namespace deft
