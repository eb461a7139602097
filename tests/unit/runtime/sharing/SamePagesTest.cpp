#include "runtime/sharing/SamePages.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace deft::sharing {
namespace {

TEST(SamePagesTest, TellsTheFirstDifferenceOfAnyLength) {
  std::vector<int> row(300), other;
  std::iota(row.begin(), row.end(), 0);
  for (int count : {0, 1, 63, 64, 65, 128, 200, 300}) {
    other = row;
    EXPECT_EQ(samePages(row.data(), other.data(), count), count);
    for (int change = 0; change < 300; change += 7) {
      other = row;
      other[static_cast<std::size_t>(change)] = -1;
      EXPECT_EQ(samePages(row.data(), other.data(), count), std::min(change, count));
    }
  }
}

TEST(SamePagesTest, FindsTheFirstNegativePage) {
  std::vector<int> row(300, 5);
  row[7] = -1; // before what is asked for
  row[290] = -1;
  EXPECT_EQ(firstNegative(row.data(), 8, 290), 290);
  EXPECT_EQ(firstNegative(row.data(), 290, 290), 290);
  EXPECT_EQ(firstNegative(row.data(), 8, 300), 290);
  for (int at = 8; at < 290; at += 5) {
    row[static_cast<std::size_t>(at)] = -3;
    EXPECT_EQ(firstNegative(row.data(), 8, 300), at);
    row[static_cast<std::size_t>(at)] = 0;
  }
}

} // namespace
} // namespace deft::sharing
