#include "runtime/tree/CachePlacement.h"
#include "runtime/tree/Ranks.h"
#include "tests/support/Forest.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace deft::tree {
namespace {

TEST(RankProposalTest, SharedNodesAreSplitAndEndsStayWhole) {
  KvTree tree = test::levelTree({1, 4}, {160, 32});
  ASSERT_TRUE(placeInCache(tree, {}));
  for (const int count : {1, 2, 4}) {
    const std::vector<int> holders = proposeHolders(tree, count, 16);
    std::map<int, int> pagesOfRank;
    std::vector<std::set<int>> ranksOfNode(5);
    for (int node = 0; node < 5; ++node) {
      const Node &own = tree.nodes()[static_cast<std::size_t>(node)];
      for (int at = 0; at < own.tokens; at += 16) {
        const int rank = holders.at(static_cast<std::size_t>((own.location + at) / 16));
        ranksOfNode[static_cast<std::size_t>(node)].insert(rank);
        ++pagesOfRank[rank];
      }
    }
    EXPECT_EQ(ranksOfNode[0].size(), static_cast<std::size_t>(count));
    for (int node = 1; node < 5; ++node)
      EXPECT_EQ(ranksOfNode[static_cast<std::size_t>(node)].size(), 1U);
    int least = 1000, most = 0;
    for (const auto &[rank, pages] : pagesOfRank) {
      least = std::min(least, pages);
      most = std::max(most, pages);
    }
    EXPECT_LE(most - least, 2) << count << " ranks";
  }
}

/// All tokens have a holder, whatever the tree; the same tree gives the same layout.
TEST(RankProposalTest, RandomForestsAreHeldWhole) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    KvTree tree = test::randomForest(seed);
    ASSERT_TRUE(placeInCache(tree, {}));
    const int count = static_cast<int>(seed % 4) + 1;
    const std::vector<int> holders = proposeHolders(tree, count, 16);
    EXPECT_EQ(holders, proposeHolders(KvTree(tree), count, 16));
    tree.setRanks(Ranks::make(count, 0, RankLayout::ByPage, 16, holders).value());
    const auto held = checkHeld(tree);
    ASSERT_TRUE(held) << held.error().message;
  }
}

TEST(RankProposalTest, TheHashIsOfAllButTheRank) {
  const auto hash = [](int rank, int unit, int tokens) {
    KvTree tree = test::levelTree({1, 2}, {tokens, 5});
    tree.setRanks(Ranks::make(2, rank, RankLayout::Interleaved, unit).value());
    return hashOf(tree);
  };
  EXPECT_EQ(hash(0, 16, 20), hash(1, 16, 20));
  EXPECT_NE(hash(0, 16, 20), hash(0, 32, 20));
  EXPECT_NE(hash(0, 16, 20), hash(0, 16, 21));
}

} // namespace
} // namespace deft::tree
