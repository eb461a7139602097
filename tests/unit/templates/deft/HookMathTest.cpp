#include "tests/device/Words.h"

#include "deft/hook_math.cuh"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace deft {
namespace {

/// The units' own functions are exact here: what is off is what is left of an angle.
TEST(HookMathTest, FastSinesAreThoseOfAnglesUpTo2To24) {
  std::mt19937 random(1);
  for (const float most : {1.f, 100.f, 1e4f, 131072.f, 16777216.f})
    for (int i = 0; i < 2000; ++i) {
      const float x = std::uniform_real_distribution<float>(-most, most)(random);
      ASSERT_NEAR(sinFast(x), std::sin(static_cast<double>(x)), 5e-7) << x;
      ASSERT_NEAR(cosFast(x), std::cos(static_cast<double>(x)), 5e-7) << x;
      ASSERT_LE(std::fabs(withinTurn(x)), 4.f) << x; // as far as the units are exact
    }
  EXPECT_EQ(sinFast(0.f), 0.f);
  EXPECT_EQ(cosFast(0.f), 1.f);
}

} // namespace
} // namespace deft
