#include "runtime/tree/Ranks.h"

#include "tests/support/Forest.h"

#include <gtest/gtest.h>

#include <numeric>

namespace deft::tree {
namespace {

std::string errorOf(const support::Result<Ranks> &made) { return made ? "" : made.error().message; }

TEST(RanksTest, WrongLayoutsAreNamed) {
  EXPECT_EQ(errorOf(Ranks::make(0, 0, RankLayout::Interleaved, 1)), "a tree over 0 ranks, not 1 to 64");
  EXPECT_EQ(errorOf(Ranks::make(65, 0, RankLayout::Interleaved, 1)), "a tree over 65 ranks, not 1 to 64");
  EXPECT_EQ(errorOf(Ranks::make(4, 4, RankLayout::Interleaved, 1)), "rank 4 of 4 ranks");
  EXPECT_EQ(errorOf(Ranks::make(4, -1, RankLayout::Interleaved, 1)), "rank -1 of 4 ranks");
  EXPECT_EQ(errorOf(Ranks::make(4, 0, RankLayout::Interleaved, 0)), "a unit of 0 tokens, not 1 to 16777216");
  EXPECT_EQ(errorOf(Ranks::make(4, 0, RankLayout::Interleaved, 1, {0})), "interleaved tokens, and 1 holders");
  EXPECT_EQ(errorOf(Ranks::make(2, 0, RankLayout::ByPage, 16, {0, 1, 2})),
            "page 2 lies on rank 2, and there are 2 ranks");
  EXPECT_EQ(errorOf(Ranks::make(2, 0, RankLayout::ByNode, 1, {-2})),
            "node 0 lies on rank -2, and there are 2 ranks");
}

/// Whatever the layout, ranks hold each token of a stretch once, and say so in both forms.
TEST(RanksTest, EachTokenIsHeldOnce) {
  for (const RankLayout layout : {RankLayout::Interleaved, RankLayout::ByPage, RankLayout::ByNode})
    for (const int count : {1, 2, 3, 4})
      for (const int unit : {1, 3, 16})
        for (int location = 0; location < 40; location += 7) {
          std::vector<int> holders;
          for (int i = 0; layout != RankLayout::Interleaved && i < 200; ++i)
            holders.push_back(i * 5 / 3 % count);
          const int node = 3, begin = 2, end = 90;
          std::vector<int> seen(end, 0);
          for (int rank = 0; rank < count; ++rank) {
            const Ranks ranks = Ranks::make(count, rank, layout, unit, holders).value();
            std::vector<HeldTokens> apart, joined;
            ranks.find(node, location, begin, end, false, apart);
            ranks.find(node, location, begin, end, true, joined);
            for (const HeldTokens &held : apart) {
              ASSERT_EQ(held.tokens, held.end - held.begin);
              for (int t = held.begin; t < held.end; ++t) {
                ++seen[static_cast<std::size_t>(t)];
                ASSERT_EQ(ranks.holderOf(node, location + t), rank);
              }
            }
            for (int until = begin; until <= end; ++until) {
              const auto count = [&](const std::vector<HeldTokens> &all) {
                return std::accumulate(all.begin(), all.end(), 0, [&](int sum, const HeldTokens &held) {
                  return sum + ranks.countBefore(held, location, until);
                });
              };
              ASSERT_EQ(count(apart), count(joined));
            }
            if (layout == RankLayout::Interleaved && !apart.empty()) {
              ASSERT_EQ(joined.size(), 1U);
              EXPECT_EQ(joined[0].location, apart[0].location);
              EXPECT_EQ(joined[0].location + joined[0].tokens, apart.back().location + apart.back().tokens);
            }
          }
          for (int t = begin; t < end; ++t)
            ASSERT_EQ(seen[static_cast<std::size_t>(t)], 1);
        }
}

TEST(RanksTest, InterleavedTokensLieAsInAnEnginesCache) {
  // Four ranks, units of two tokens: rank 1 has locations 2, 3, 10, 11, ...
  const Ranks ranks = Ranks::make(4, 1, RankLayout::Interleaved, 2).value();
  EXPECT_EQ(ranks.holderOf(0, 11), 1);
  EXPECT_EQ(ranks.heldBefore(11), 3);
  EXPECT_EQ(ranks.heldBefore(8), 2);
}

TEST(RanksTest, WhoHoldsWhatALeafGains) {
  using Holder = Ranks::Holder;
  const Ranks pages = Ranks::make(2, 0, RankLayout::ByPage, 16, {0, 1, 1, 0}).value();
  EXPECT_EQ(pages.holderOfNext(0, 0, 4, 16), Holder::Own);
  EXPECT_EQ(pages.holderOfNext(0, 0, 16, 48), Holder::Other);
  EXPECT_EQ(pages.holderOfNext(0, 0, 4, 20), Holder::Several);
  EXPECT_EQ(pages.holderOfNext(0, 0, 50, 70), Holder::Several); // nobody has the page behind the last one yet
  EXPECT_EQ(Ranks::make(2, 0, RankLayout::ByNode, 1, {0}).value().holderOfNext(0, 5, 9, 80), Holder::Own);
}

TEST(RanksTest, TokensWithoutAHolderAreNamed) {
  KvTree tree = test::levelTree({1, 2}, {20, 5});
  ASSERT_TRUE(tree.place(0, 0));
  ASSERT_TRUE(tree.place(1, 32));
  ASSERT_TRUE(tree.place(2, 48));
  EXPECT_TRUE(checkHeld(tree));
  tree.setRanks(Ranks::make(2, 0, RankLayout::ByPage, 16, {0, 1, 1}).value());
  EXPECT_EQ(checkHeld(tree).error().message, "no rank holds token 0 of node 2, at location 48");
  tree.setRanks(Ranks::make(2, 0, RankLayout::ByPage, 16, {0, -1, 1, 1}).value());
  EXPECT_EQ(checkHeld(tree).error().message, "no rank holds token 16 of node 0, at location 16");
  tree.setRanks(Ranks::make(2, 0, RankLayout::ByNode, 1, {0, 1}).value());
  EXPECT_EQ(checkHeld(tree).error().message, "no rank holds token 0 of node 2, at location 48");
  tree.setRanks(Ranks::make(2, 0, RankLayout::ByNode, 1, {0, 1, 1}).value());
  EXPECT_TRUE(checkHeld(tree));
}

TEST(RanksTest, ATreeKeepsItsRanksAndPlansOfBeforeAreStale) {
  KvTree tree = test::levelTree({1, 2}, {20, 5});
  const auto before = tree.structureGeneration();
  tree.setRanks(Ranks::make(2, 0, RankLayout::Interleaved, 16).value());
  EXPECT_GT(tree.structureGeneration(), before);
  const auto set = tree.structureGeneration();
  tree.setRanks(Ranks::make(2, 0, RankLayout::Interleaved, 16).value()); // the same
  EXPECT_EQ(tree.structureGeneration(), set);
  tree.clear();
  ASSERT_NE(tree.ranks(), nullptr);
  tree.setRanks({});
  EXPECT_EQ(tree.ranks(), nullptr);
}

} // namespace
} // namespace deft::tree
