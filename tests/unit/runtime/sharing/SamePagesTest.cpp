#include "runtime/sharing/SamePages.h"

#include <gtest/gtest.h>

#include <climits>
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

TEST(SamePagesTest, FindsTheFirstPageThatTheCacheLacks) {
  std::vector<int> row(300, 5);
  for (const int last : {5, 6, 1000, INT_MAX}) {
    EXPECT_EQ(firstOutside(row.data(), 0, 300, last), 300) << last;
    const int above = last == INT_MAX ? -1 : last + 1;
    for (const int outside : {-1, INT_MIN, above})
      for (int at = 0; at < 300; at += 13) {
        row[static_cast<std::size_t>(at)] = outside;
        EXPECT_EQ(firstOutside(row.data(), 0, 300, last), at) << last << " " << outside;
        row[static_cast<std::size_t>(at)] = 5;
      }
  }
  EXPECT_EQ(firstOutside(row.data(), 3, 300, 4), 3);
  EXPECT_EQ(firstOutside(row.data(), 3, 300, -1), 3); // no page at all
}

TEST(SamePagesTest, FindsTheFirstNegativePage) {
  constexpr int kAny = INT_MAX;
  std::vector<int> row(300, 5);
  row[7] = -1; // before what is asked for
  row[290] = -1;
  EXPECT_EQ(firstOutside(row.data(), 8, 290, kAny), 290);
  EXPECT_EQ(firstOutside(row.data(), 290, 290, kAny), 290);
  EXPECT_EQ(firstOutside(row.data(), 8, 300, kAny), 290);
  for (int at = 8; at < 290; at += 5) {
    row[static_cast<std::size_t>(at)] = -3;
    EXPECT_EQ(firstOutside(row.data(), 8, 300, kAny), at);
    row[static_cast<std::size_t>(at)] = 0;
  }
}

} // namespace
} // namespace deft::sharing
