#include "runtime/tree/Places.h"

#include "runtime/tree/CachePlacement.h"
#include "tests/support/Forest.h"

#include <gtest/gtest.h>

namespace deft::tree {
namespace {

std::string messageOf(const KvTree &tree) {
  const auto checked = checkPlaces(tree);
  return checked ? "" : checked.error().message;
}

TEST(PlacesTest, PlacedForestsHaveSlotsOfTheirOwn) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    KvTree tree = test::randomForest(seed);
    ASSERT_TRUE(placeInCache(
        tree, {.pageSize = static_cast<int>(seed % 9), .order = PlacementOrder::Scattered, .seed = seed}));
    EXPECT_EQ(messageOf(tree), "") << "seed " << seed;
  }
}

TEST(PlacesTest, TwoNodesThatShareASlotAreNamed) {
  KvTree tree;
  ASSERT_TRUE(tree.addNode(-1, 50, 100));
  ASSERT_TRUE(tree.addNode(0, 10, 150)); // right behind it
  ASSERT_TRUE(tree.addNode(0, 10, 159));
  EXPECT_EQ(messageOf(tree), "node 1 has slots 150 to 159, node 2 has slots 159 to 168: they share some");
  ASSERT_TRUE(tree.place(2, 160));
  EXPECT_EQ(messageOf(tree), "");
  ASSERT_TRUE(tree.place(2, 110)); // inside of another
  EXPECT_EQ(messageOf(tree), "node 0 has slots 100 to 149, node 2 has slots 110 to 119: they share some");
}

TEST(PlacesTest, NodesThatNobodyPlacedShareTheFirstSlots) {
  KvTree tree;
  ASSERT_TRUE(tree.addNode(-1, 5));
  ASSERT_TRUE(tree.addNode(0, 3));
  EXPECT_EQ(messageOf(tree), "node 0 has slots 0 to 4, node 1 has slots 0 to 2: they share some");
}

TEST(PlacesTest, ANodeOfTokensThatNobodyPlacedIsNamed) {
  KvTree tree;
  ASSERT_TRUE(tree.addNode(-1, 5, 0));
  ASSERT_TRUE(tree.fork(0)); // empty
  ASSERT_TRUE(tree.addNode(0, 4, KvTree::kNotPlaced));
  ASSERT_TRUE(tree.addNode(0, 4, KvTree::kNotPlaced));
  EXPECT_EQ(checkPlaced(tree).error().message,
            "node 2 of 4 tokens is not placed: it has no location in the cache");
  ASSERT_TRUE(tree.prune(2));
  ASSERT_TRUE(tree.place(3, 100));
  EXPECT_TRUE(checkPlaced(tree));
  tree.forgetPlaces();
  EXPECT_FALSE(checkPlaced(tree));
}

TEST(PlacesTest, EmptyAndDeadNodesHaveNoSlots) {
  KvTree tree;
  ASSERT_TRUE(tree.addNode(-1, 5, 0));
  ASSERT_TRUE(tree.addNode(0, 0, 2));
  ASSERT_TRUE(tree.addNode(0, 4, 3));
  ASSERT_TRUE(tree.prune(2));
  EXPECT_EQ(messageOf(tree), "");
}

TEST(PlacesTest, AnOverlapOfManyIsFoundWhereverItIs) {
  KvTree tree;
  constexpr int kNodes = 300;
  for (int i = 0; i < kNodes; ++i)
    ASSERT_TRUE(tree.addNode(i == 0 ? -1 : i / 2, 1 + i % 7, 10 * ((i * 37) % kNodes)));
  ASSERT_EQ(messageOf(tree), "");
  for (int i = 1; i < kNodes; i += 13) {
    KvTree broken = tree;
    const Node &other = tree.nodes()[static_cast<std::size_t>(i - 1)];
    ASSERT_TRUE(broken.place(i, other.location + other.tokens - 1));
    EXPECT_NE(messageOf(broken), "") << i;
  }
}

} // namespace
} // namespace deft::tree
