#include "runtime/tree/CachePlacement.h"
#include "tests/support/Forest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace deft::tree {
namespace {

PlacementOptions options(int pageSize, PlacementOrder order, std::uint64_t seed = 1) {
  PlacementOptions result;
  result.pageSize = pageSize;
  result.order = order;
  result.seed = seed;
  return result;
}

TEST(CachePlacementTest, EveryTokenHasASlotOfItsOwn) {
  for (int pageSize : {0, 1, 7, 16, 64})
    for (PlacementOrder order : {PlacementOrder::InOrder, PlacementOrder::Scattered})
      for (std::uint64_t seed = 0; seed < 20; ++seed) {
        SCOPED_TRACE("page size " + std::to_string(pageSize) + ", seed " + std::to_string(seed));
        KvTree tree = test::randomForest(seed);
        const auto placement = placeInCache(tree, options(pageSize, order, seed));
        ASSERT_TRUE(placement);
        std::set<int> slots;
        std::size_t tokens = 0;
        for (const Node &node : tree.nodes())
          for (int t = node.location; t < node.location + node.tokens; ++t, ++tokens) {
            const int slot =
                pageSize == 0 ? t : placement->pageTable.at(t / pageSize) * pageSize + t % pageSize;
            EXPECT_LT(slot, placement->poolTokens());
            slots.insert(slot);
          }
        EXPECT_EQ(slots.size(), tokens);
      }
}

TEST(CachePlacementTest, InOrderNodesShareAPage) {
  KvTree tree = test::levelTree({1, 2}, {20, 5});
  const auto placement = placeInCache(tree, options(16, PlacementOrder::InOrder));
  ASSERT_TRUE(placement);
  EXPECT_EQ(tree.nodes()[1].location, 20);
  EXPECT_EQ(tree.nodes()[2].location, 25);
  EXPECT_EQ(placement->pageTable, (std::vector<int>{0, 1}));
}

TEST(CachePlacementTest, ScatteredPagesAreShuffledOverALargerPool) {
  KvTree tree = test::levelTree({1, 8}, {400, 50});
  const auto placement = placeInCache(tree, options(16, PlacementOrder::Scattered));
  ASSERT_TRUE(placement);
  EXPECT_GT(placement->poolPages, static_cast<int>(placement->pageTable.size()));
  EXPECT_FALSE(std::is_sorted(placement->pageTable.begin(), placement->pageTable.end()));
}

TEST(CachePlacementTest, OnlyATreeThatLacksAPlaceIsLaidOut) {
  KvTree tree;
  ASSERT_TRUE(tree.addNode(-1, 20, 100));
  ASSERT_TRUE(tree.addNode(0, 5, 300));
  EXPECT_EQ(placedTree(tree, 16)->nodes(), tree.nodes());
  ASSERT_TRUE(tree.addNode(0, 5, KvTree::kNotPlaced));
  EXPECT_EQ(placedTree(tree, 16)->nodes()[2].location, 25);
  EXPECT_EQ(tree.nodes()[2].location, KvTree::kNotPlaced);
}

TEST(CachePlacementTest, TheSeedDecides) {
  const auto table = [](std::uint64_t seed) {
    KvTree tree = test::levelTree({1, 8}, {400, 50});
    return placeInCache(tree, options(16, PlacementOrder::Scattered, seed))->pageTable;
  };
  EXPECT_EQ(table(3), table(3));
  EXPECT_NE(table(3), table(4));
}

TEST(CachePlacementTest, ThePoolIsAsLargeAsAsked) {
  KvTree tree = test::levelTree({1}, {10});
  PlacementOptions large = options(16, PlacementOrder::Scattered);
  large.poolPages = 1000;
  EXPECT_EQ(placeInCache(tree, large)->poolPages, 1000);
  large.poolPages = KvTree::kMaxTokens / 16 + 1;
  EXPECT_FALSE(placeInCache(tree, large));
}

} // namespace
} // namespace deft::tree
