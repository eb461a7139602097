#include "runtime/tree/AddressSpace.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace deft::tree {
namespace {

TEST(AddressSpaceTest, TheSmallestHoleThatFitsIsTaken) {
  AddressSpace space(100);
  ASSERT_TRUE(space.takeAt(10, 20)); // holes of 10 and 70
  ASSERT_TRUE(space.takeAt(35, 5));  // holes of 10, 5 and 60
  EXPECT_EQ(space.take(5), 30);
  EXPECT_EQ(space.take(6), 0);
  EXPECT_EQ(space.take(11), 40);
  EXPECT_EQ(space.free(), 100 - 20 - 5 - 5 - 6 - 11);
  EXPECT_EQ(space.largestHole(), 49);
}

TEST(AddressSpaceTest, WhatIsTakenOrBeyondTheLimitIsNotTakenAgain) {
  AddressSpace space(10);
  ASSERT_TRUE(space.takeAt(4, 2));
  EXPECT_FALSE(space.takeAt(3, 2));
  EXPECT_FALSE(space.takeAt(5, 1));
  EXPECT_FALSE(space.takeAt(9, 2));
  EXPECT_EQ(space.take(5), std::nullopt);
  EXPECT_EQ(space.free(), 8);
}

TEST(AddressSpaceTest, NeighbouringHolesBecomeOne) {
  AddressSpace space(30);
  ASSERT_TRUE(space.takeAt(0, 30));
  space.give(0, 10);
  space.give(20, 10);
  EXPECT_EQ(space.largestHole(), 10);
  space.give(10, 10);
  EXPECT_EQ(space.largestHole(), 30);
}

TEST(AddressSpaceTest, NothingIsTakenAndGivenBackWithoutATrace) {
  AddressSpace space(10);
  space.give(3, 0);
  EXPECT_EQ(space.free(), 10);
  EXPECT_EQ(space.largestHole(), 10);
  AddressSpace none(0);
  EXPECT_EQ(none.take(1), std::nullopt);
  EXPECT_EQ(none.largestHole(), 0);
}

/// Against a table of which addresses are taken.
TEST(AddressSpaceTest, AnyOrderOfTakingAndGiving) {
  constexpr unsigned kSeed = 7;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937 random(kSeed);
  AddressSpace space(64);
  std::vector<bool> taken(64);
  std::vector<std::pair<std::int64_t, std::int64_t>> mine;
  for (int turn = 0; turn < 5000; ++turn) {
    if (random() % 2 == 0) {
      const std::int64_t count = 1 + random() % 12;
      if (const auto begin = space.take(count)) {
        for (std::int64_t at = *begin; at < *begin + count; ++at) {
          ASSERT_FALSE(taken[static_cast<std::size_t>(at)]) << "turn " << turn;
          taken[static_cast<std::size_t>(at)] = true;
        }
        mine.emplace_back(*begin, count);
      } else {
        ASSERT_LT(space.largestHole(), count);
      }
    } else if (!mine.empty()) {
      const std::size_t which = random() % mine.size();
      const auto [begin, count] = mine[which];
      mine.erase(mine.begin() + static_cast<std::ptrdiff_t>(which));
      space.give(begin, count);
      std::fill_n(taken.begin() + begin, count, false);
    }
    std::int64_t free = 0, hole = 0, largest = 0;
    for (const bool isTaken : taken) {
      hole = isTaken ? 0 : hole + 1;
      free += !isTaken;
      largest = std::max(largest, hole);
    }
    ASSERT_EQ(space.free(), free) << "turn " << turn;
    ASSERT_EQ(space.largestHole(), largest) << "turn " << turn;
  }
}

} // namespace
} // namespace deft::tree
