#include "compiler/support/Numbers.h"

#include <gtest/gtest.h>

namespace deft::support {
namespace {

TEST(NumbersTest, ThousandsAreSeparated) {
  EXPECT_EQ(withSeparators(0), "0");
  EXPECT_EQ(withSeparators(999), "999");
  EXPECT_EQ(withSeparators(1000), "1,000");
  EXPECT_EQ(withSeparators(-1234567), "-1,234,567");
}

TEST(NumbersTest, OneThingIsSingular) {
  EXPECT_EQ(counted(1, "item", "items"), "1 item");
  EXPECT_EQ(counted(0, "item", "items"), "0 items");
  EXPECT_EQ(counted(2048, "item", "items"), "2,048 items");
}

TEST(NumbersTest, RoundsToDecimalsAndUnits) {
  EXPECT_EQ(rounded(2.345, 1), "2.3");
  EXPECT_EQ(rounded(2.5, 0), "2");
  EXPECT_EQ(bytesOf(1500), "1.5 kB");
  EXPECT_EQ(bytesOf(2.5e6), "2.5 MB");
  EXPECT_EQ(bytesOf(3.25e9), "3.25 GB");
}

TEST(NumbersTest, KeepsTheDigitsThatMeanSomething) {
  EXPECT_EQ(significant(0.012345, 2), "0.012");
  EXPECT_EQ(significant(3, 2), "3");
  EXPECT_EQ(significant(1234.5, 3), "1.23e+03");
}

} // namespace
} // namespace deft::support
