#include "tuner/calibrate/PriceQuality.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace deft::calibrate {
namespace {

TEST(PriceQualityTest, ErrorsAreFactorsEitherWay) {
  // Off by a quarter, not at all, and by a factor of two.
  const std::vector<PricedProbe> probes{
      {.us = 10, .priceUs = 8}, {.us = 10, .priceUs = 10}, {.us = 10, .priceUs = 20}};
  const PriceQuality quality = qualityOf(probes);
  EXPECT_DOUBLE_EQ(quality.medianError, 0.25);
  EXPECT_DOUBLE_EQ(quality.worstError, 1);
}

TEST(PriceQualityTest, RegretIsOfTheLeastRankOverTheFastestOfEachTree) {
  const std::vector<PricedProbe> probes{
      {.tree = 0, .isChoice = true, .us = 10, .priceUs = 1, .rank = 2},
      {.tree = 0, .isChoice = true, .us = 12, .priceUs = 1, .rank = 1}, // is chosen: a fifth longer
      {.tree = 0, .isChoice = false, .us = 5, .priceUs = 1, .rank = 0}, // is not chosen from
      {.tree = 1, .isChoice = true, .us = 10, .priceUs = 1, .rank = 1}, // is chosen, and the fastest
      {.tree = 1, .isChoice = true, .us = 30, .priceUs = 1, .rank = 3},
      {.tree = 2, .isChoice = true, .us = 99, .priceUs = 1, .rank = 1}, // no choice
  };
  const PriceQuality quality = qualityOf(probes);
  EXPECT_EQ(quality.trees, 2);
  EXPECT_NEAR(quality.worstRegret, 0.2, 1e-12);
  EXPECT_NEAR(quality.meanRegret, std::sqrt(1.2) - 1, 1e-12);
}

TEST(PriceQualityTest, WithoutAChoiceThereIsNoRegret) {
  const std::vector<PricedProbe> probes{{.us = 10, .priceUs = 8}};
  EXPECT_EQ(qualityOf(probes).trees, 0);
  EXPECT_EQ(qualityOf(probes).meanRegret, 0);
}

} // namespace
} // namespace deft::calibrate
