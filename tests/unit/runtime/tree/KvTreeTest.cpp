#include "runtime/tree/KvTree.h"
#include "tests/support/Forest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deft::tree {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(KvTreeTest, PositionsAndDepthsFollowThePath) {
  KvTree tree;
  ASSERT_EQ(tree.addNode(-1, 200).value(), 0);
  ASSERT_EQ(tree.addNode(0, 7).value(), 1);
  ASSERT_EQ(tree.addNode(1, 3).value(), 2);
  ASSERT_EQ(tree.addNode(-1, 5).value(), 3);
  EXPECT_EQ(tree.nodes()[2].position, 207);
  EXPECT_EQ(tree.nodes()[2].depth, 2);
  EXPECT_EQ(tree.nodes()[3].position, 0);
  EXPECT_EQ(tree.nodes()[3].depth, 0);
}

TEST(KvTreeTest, AQueryWithoutPositionSeesItsWholeNode) {
  KvTree tree;
  (void)tree.addNode(-1, 200);
  (void)tree.addNode(0, 7);
  (void)tree.addQuery(1);
  (void)tree.addQuery(0, 150);
  EXPECT_EQ(tree.pathTokens(tree.queries()[0]), 207);
  EXPECT_EQ(tree.pathTokens(tree.queries()[1]), 150);
}

TEST(KvTreeTest, OrdersQueriesByPreorderAndPosition) {
  KvTree tree;
  (void)tree.addNode(-1, 10); // 0: children 1 and 3
  (void)tree.addNode(0, 10);  // 1: child 4
  (void)tree.addNode(-1, 10); // 2
  (void)tree.addNode(0, 10);  // 3
  (void)tree.addNode(1, 10);  // 4
  (void)tree.addQuery(3);     // 0
  (void)tree.addQuery(2);     // 1
  (void)tree.addQuery(4);     // 2
  (void)tree.addQuery(1, 9);  // 3
  (void)tree.addQuery(1, 2);  // 4
  (void)tree.addQuery(0);     // 5
  (void)tree.addQuery(1, 9);  // 6
  const QueryOrder order = tree.queryOrder();
  EXPECT_THAT(order.callerIndex, ElementsAre(5, 4, 3, 6, 2, 0, 1));
  EXPECT_THAT(order.ownBegin, ElementsAre(0, 1, 6, 5, 4));
  EXPECT_THAT(order.ownEnd, ElementsAre(1, 4, 7, 6, 5));
  EXPECT_THAT(order.subtreeEnd, ElementsAre(6, 5, 7, 6, 5));
}

TEST(KvTreeTest, ReadersOfEveryNodeAreOneInterval) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const KvTree tree = test::randomForest(seed);
    const QueryOrder order = tree.queryOrder();
    for (std::size_t n = 0; n < tree.nodes().size(); ++n)
      for (std::size_t i = 0; i < order.callerIndex.size(); ++i) {
        int node = tree.queries()[order.callerIndex[i]].node;
        while (node >= 0 && node != static_cast<int>(n))
          node = tree.nodes()[node].parent;
        const bool isBelow = node >= 0;
        EXPECT_EQ(isBelow,
                  static_cast<int>(i) >= order.ownBegin[n] && static_cast<int>(i) < order.subtreeEnd[n]);
      }
  }
}

TEST(KvTreeTest, ChangesBumpTheGenerationAndFailuresDoNot) {
  KvTree tree;
  std::uint64_t last = tree.generation();
  const auto changed = [&] { return std::exchange(last, tree.generation()) != tree.generation(); };
  ASSERT_TRUE(tree.addNode(-1, 4));
  EXPECT_TRUE(changed());
  ASSERT_TRUE(tree.addQuery(0));
  EXPECT_TRUE(changed());
  ASSERT_TRUE(tree.place(0, 12));
  EXPECT_TRUE(changed());
  tree.clearQueries();
  EXPECT_TRUE(changed());
  EXPECT_FALSE(tree.addNode(1, 4));
  EXPECT_FALSE(tree.addNode(-1, 4, -2));
  EXPECT_FALSE(tree.addQuery(0, 5));
  EXPECT_FALSE(tree.place(1, 0));
  EXPECT_FALSE(changed());
  EXPECT_EQ(tree.nodes().size(), 1u);
}

TEST(KvTreeTest, ErrorsNameTheNumbers) {
  KvTree tree;
  (void)tree.addNode(-1, 7);
  EXPECT_EQ(tree.addNode(1, 3).error().message, "parent 1 of node 1 is not an earlier node");
  EXPECT_EQ(tree.addNode(-2, 3).error().message, "parent -2 of node 1 is not an earlier node");
  EXPECT_EQ(tree.addNode(0, -3).error().message, "-3 tokens in node 1, must be 0 to 1073741824");
  EXPECT_EQ(tree.addQuery(1).error().message, "query 0 hangs on node 1, but there are 1 nodes");
  EXPECT_EQ(tree.addQuery(0, 8).error().message,
            "position 8 of query 0 is outside node 0, which has 7 tokens");
  EXPECT_THAT(tree.addNode(0, KvTree::kMaxTokens).error().message,
              HasSubstr("longer than 1073741824 tokens"));
}

} // namespace
} // namespace deft::tree
