#include "runtime/plan/Deal.h"

#include <gtest/gtest.h>

#include <vector>

namespace deft::plan {
namespace {

/// An item whose runs are given by tokens: common ones, then those of each warp.
struct DealtItem {
  abi::Item item{};
  std::vector<abi::Run> runs;

  DealtItem(const std::vector<int> &common, const std::vector<std::vector<int>> &dealt) {
    add(common);
    std::vector<int> begins;
    for (const std::vector<int> &ofWarp : dealt) {
      begins.push_back(static_cast<int>(runs.size()));
      add(ofWarp);
    }
    for (std::size_t w = 0; w < begins.size(); ++w)
      runs[w].dealtBegin = begins[w];
    item.runCount = static_cast<int>(runs.size());
    countDealt(item, runs);
  }

private:
  void add(const std::vector<int> &tokens) {
    for (const int count : tokens) {
      abi::Run run{};
      run.begin = item.tokens;
      run.tokens = count;
      runs.push_back(run);
      item.tokens += count;
    }
  }
};

abi::Run seenBy(int queryBegin, int queryEnd, int slope = 0) {
  abi::Run run{};
  run.queryBegin = queryBegin;
  run.queryEnd = queryEnd;
  run.slope = slope;
  return run;
}

TEST(DealTest, ARunIsAWarpsWhereNoRowOfAnotherSeesIt) {
  for (const int ratio : {1, 3, 4, 16})
    for (int begin = 0; begin * ratio < 64; ++begin)
      for (int end = begin + 1; end * ratio <= 64; ++end) {
        bool isAlone = true;
        for (int row = begin * ratio; row < end * ratio; ++row)
          isAlone &= row / 16 == begin * ratio / 16;
        EXPECT_EQ(ownerOf(seenBy(begin, end), ratio), isAlone ? begin * ratio / 16 : -1)
            << begin << " to " << end << " by " << ratio;
        EXPECT_EQ(ownerOf(seenBy(begin, end, 1), ratio), -1);
      }
}

TEST(DealTest, OnlyRowsOfAllFourWarpsAreDealt) {
  EXPECT_FALSE(haveAllWarps(48));
  EXPECT_TRUE(haveAllWarps(49));
  EXPECT_TRUE(haveAllWarps(64));
  EXPECT_FALSE(haveAllWarps(65));
  EXPECT_FALSE(haveFewerWarps(65));
}

TEST(DealTest, TheWarpWithTheMostTokensSaysHowManyTilesThereAre) {
  const DealtItem even({100, 28}, {{16}, {16}, {16}, {16}});
  EXPECT_EQ(even.item.commonTokens, 128);
  EXPECT_EQ(even.item.dealtTiles, 1);
  EXPECT_EQ(DealtItem({64}, {{16}, {17}, {1}, {5}}).item.dealtTiles, 2);
  EXPECT_EQ(DealtItem({64}, {{1}, {2}, {3}, {10, 20, 19}}).item.dealtTiles, 4)
      << "49 tokens, of the last warp";
  EXPECT_EQ(DealtItem({64}, {{40, 8}, {2}, {3}, {1}}).item.dealtTiles, 3) << "48, of the first";
}

TEST(DealTest, WhatAnItemSaysOfItsRunsIsHeldAgainstThem) {
  const DealtItem right({64, 3}, {{16}, {17}, {1}, {5}});
  EXPECT_TRUE(isDealtRight(right.item, right.runs));
  const auto isRightWith = [&](auto change) {
    DealtItem other = right;
    change(other);
    return isDealtRight(other.item, other.runs);
  };
  EXPECT_FALSE(isRightWith([](DealtItem &d) { ++d.item.commonTokens; }));
  EXPECT_FALSE(isRightWith([](DealtItem &d) { --d.item.dealtTiles; }));
  EXPECT_FALSE(isRightWith([](DealtItem &d) { ++d.item.tokens, d.item.tokens += 16 * 4; }))
      << "the last warp's";
  EXPECT_FALSE(isRightWith([](DealtItem &d) { d.runs[2].dealtBegin = d.runs[1].dealtBegin; }));
  EXPECT_FALSE(isRightWith([](DealtItem &d) { d.runs[0].dealtBegin = 0; })) << "nothing is common";
  EXPECT_FALSE(isRightWith([](DealtItem &d) { d.runs.resize(3); }));
}

} // namespace
} // namespace deft::plan
