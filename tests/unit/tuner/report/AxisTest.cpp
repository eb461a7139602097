#include "tuner/report/Axis.h"

#include "compiler/config/ConfigJson.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>

namespace deft::report {
namespace {

TEST(AxisTest, IsLogarithmicAndHoldsAllRatiosAndOne) {
  const std::vector<double> ratios = {0.5, 0.25, 0.3};
  const RatioAxis axis(ratios, 100, 0);
  EXPECT_NEAR(axis.at(0.5) - axis.at(1), axis.at(0.25) - axis.at(0.5), 1e-9);
  EXPECT_LT(axis.at(1), axis.at(0.5)); // slower is higher
  EXPECT_LE(axis.at(0.25), 100);
  EXPECT_GE(axis.at(1), 0);
}

TEST(AxisTest, WhatIsBeyondAnEndIsThere) {
  const std::vector<double> ratios = {0.5};
  const RatioAxis axis(ratios, 100, 0);
  EXPECT_NEAR(axis.atOrEnd(0.1), 100, 1e-9);
  EXPECT_NEAR(axis.atOrEnd(9), 0, 1e-9);
  EXPECT_EQ(axis.atOrEnd(0.7), axis.at(0.7));
}

/// The heights of the lines of an axis, by what is written beside them.
std::map<std::string, double> ticksOf(const RatioAxis &axis) {
  support::Svg svg;
  axis.draw(svg, 50, 350);
  const std::string text = svg.element(400, 400);
  std::map<std::string, double> ticks;
  static const std::regex label("<text [^>]*y=\"([-0-9.]+)\"[^>]*>([0-9.]+)</text>");
  for (auto found = std::sregex_iterator(text.begin(), text.end(), label); found != std::sregex_iterator();
       ++found)
    ticks[(*found)[2]] = std::stod((*found)[1]) - 4; // the text stands a little lower than its line
  return ticks;
}

TEST(AxisTest, TicksStandWhereTheirNumbersAreAndApartFromEachOther) {
  for (const std::vector<double> &ratios :
       {std::vector<double>{}, {0.5, 0.9}, {0.031, 40}, {0.99, 1.01}, {7}}) {
    const RatioAxis axis(ratios, 380, 20);
    const auto ticks = ticksOf(axis);
    EXPECT_TRUE(ticks.contains("1"));
    std::vector<double> heights;
    for (const auto &[text, y] : ticks) {
      EXPECT_NEAR(y, axis.at(std::stod(text)), 0.06) << text;
      EXPECT_TRUE(y >= 20 && y <= 380) << text;
      heights.push_back(y);
    }
    std::sort(heights.begin(), heights.end());
    for (std::size_t i = 1; i < heights.size(); ++i)
      EXPECT_GE(heights[i] - heights[i - 1], 19.9);
  }
}

TEST(AxisTest, EveryPartitionHasAColourOfItsOwn) {
  std::set<std::string> colours{kGrey};
  std::size_t partitions = 0;
#define DEFT_ADD_COLOUR(ID, NAME, ...) colours.insert(partitionColour(#NAME)), ++partitions;
  DEFT_PARTITIONS(DEFT_ADD_COLOUR)
#undef DEFT_ADD_COLOUR
  EXPECT_EQ(colours.size(), partitions + 1);
  EXPECT_EQ(partitionColour("another"), kGrey);
}

} // namespace
} // namespace deft::report
