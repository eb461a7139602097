#include "runtime/reference/ByteProducts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace deft::reference {
namespace {

TEST(ByteProductsTest, TheScaleIsTheLeastPowerOfTwoThatFits) {
  EXPECT_EQ(byteScaleOf({448}), 1);
  EXPECT_EQ(byteScaleOf({1, -448.5}), 2);
  EXPECT_EQ(byteScaleOf({224, -224}), 0.5);
  EXPECT_EQ(byteScaleOf({225}), 1);
  EXPECT_EQ(byteScaleOf({0, 0}), 0x1p-126);
  EXPECT_EQ(byteScaleOf({0x1.fep127}), 0x1p120); // bf16's largest
}

TEST(ByteProductsTest, ElementsGoToTheNearestTiesToEven) {
  EXPECT_EQ(asByte(27, 1), 28);
  EXPECT_EQ(asByte(25, 1), 24);
  EXPECT_EQ(asByte(-29, 1), -28);
  EXPECT_EQ(asByte(0x1p-10, 1), 0); // half of the least subnormal
  EXPECT_EQ(asByte(0x1.8p-10, 1), 0x1p-9);
  EXPECT_EQ(asByte(27 * 0x1p-40, 0x1p-40), 28 * 0x1p-40);
}

TEST(ByteProductsTest, TheLargestWeightIsExact) {
  EXPECT_EQ(asByteWeight(1), 1);
  EXPECT_EQ(asByteWeight(0), 0);
  for (double weight = 1; weight > 0x1p-14; weight *= 0.937)
    EXPECT_LE(std::fabs(asByteWeight(weight) - weight), 0x1p-4 * weight) << weight;
  EXPECT_EQ(asByteWeight(0x1p-17), 0x1p-17);
  EXPECT_EQ(asByteWeight(0x1p-18), 0);
}

/// Summands cut off where units of the largest one end, as hardware does.
TEST(ByteProductsTest, SumsOfFewBitsAreWithinTheirNoise) {
  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  for (const double outlier : {1.0, 30.0}) {
    double most = 0;
    for (int i = 0; i < 2000; ++i) {
      std::vector<double> q(128);
      std::vector<float> k(q.size());
      for (std::size_t d = 0; d < q.size(); ++d) {
        q[d] = asByte(normal(random), 0x1p-6);
        k[d] = static_cast<float>(asByte(normal(random) * (d % 32 == 0 ? outlier : 1), 1));
      }
      double sum = 0, exact = 0;
      for (std::size_t step = 0; step < q.size(); step += 32) {
        double largest = std::fabs(sum);
        for (std::size_t d = step; d < step + 32; ++d)
          largest = std::max(largest, std::fabs(q[d] * k[d]));
        const double unit = std::ldexp(1, std::ilogb(largest) - 13);
        double made = std::trunc(sum / unit);
        for (std::size_t d = step; d < step + 32; ++d) {
          made += std::trunc(q[d] * k[d] / unit);
          exact += q[d] * k[d];
        }
        sum = made * unit;
      }
      most = std::max(most, std::fabs(sum - exact) / byteSumNoise(q, k.data()));
    }
    EXPECT_LT(most, 1);
    EXPECT_GT(most, 0.1);
  }
}

} // namespace
} // namespace deft::reference
