#include "tuner/measure/Samples.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace deft::measure {
namespace {

TEST(SamplesTest, MedianOfOddAndEvenCounts) {
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(median({3}), 3);
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
}

TEST(SamplesTest, OutliersMoveNeitherValueNorError) {
  std::mt19937 engine(1);
  std::normal_distribution<double> normal(10, 0.1);
  std::vector<double> values;
  for (int i = 0; i < 41; ++i)
    values.push_back(normal(engine));
  const Estimate clean = estimate(values);
  for (int i = 0; i < 8; ++i)
    values[static_cast<std::size_t>(i) * 5] = 1000; // another process had the machine
  const Estimate disturbed = estimate(values);
  EXPECT_NEAR(disturbed.value, clean.value, 0.05);
  EXPECT_LT(disturbed.error, 3 * clean.error);
}

TEST(SamplesTest, TheErrorIsThatOfTheMedian) {
  // Many repetitions of the same experiment scatter by what one of them says of itself.
  std::mt19937 engine(2);
  std::normal_distribution<double> normal(0, 1);
  std::vector<double> medians, errors;
  for (int repetition = 0; repetition < 400; ++repetition) {
    std::vector<double> values;
    for (int i = 0; i < 15; ++i)
      values.push_back(normal(engine));
    const Estimate one = estimate(values);
    medians.push_back(one.value);
    errors.push_back(one.error);
  }
  double square = 0;
  for (const double value : medians)
    square += value * value / static_cast<double>(medians.size());
  EXPECT_NEAR(median(errors), std::sqrt(square), 0.08);
}

TEST(SamplesTest, SpreadIsHalfTheQuartilesRangeOverTheMedian) {
  EXPECT_EQ(relativeSpread({}), 0);
  EXPECT_EQ(relativeSpread({5, 5, 5}), 0);
  EXPECT_DOUBLE_EQ(relativeSpread({8, 9, 10, 11, 12}), 0.1);
}

} // namespace
} // namespace deft::measure
