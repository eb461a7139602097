#include "runtime/tree/TreeSummary.h"

#include <gtest/gtest.h>

namespace deft::tree {
namespace {

TEST(TreeSummaryTest, AnEmptyTreeIsAllZeros) {
  const TreeSummary summary = summarize(KvTree());
  EXPECT_EQ(summary.nodes, 0);
  EXPECT_EQ(summary.levels, 0);
  EXPECT_EQ(summary.sharing(), 0);
}

TEST(TreeSummaryTest, CountsWhatIsThereAndWhatIsSeen) {
  KvTree tree;
  const int root = tree.addNode(-1, 100).value();
  const int left = tree.addNode(root, 10).value();
  (void)tree.addNode(root, 30); // nobody sees it
  (void)tree.addNode(-1, 7);
  (void)tree.addQuery(left);
  (void)tree.addQuery(left, 4); // sees the first four
  const TreeSummary summary = summarize(tree);
  EXPECT_EQ(summary.nodes, 4);
  EXPECT_EQ(summary.roots, 2);
  EXPECT_EQ(summary.levels, 2);
  EXPECT_EQ(summary.queries, 2);
  EXPECT_EQ(summary.tokens, 147);
  EXPECT_EQ(summary.readTokens, 110);
  EXPECT_EQ(summary.pathTokens, 110 + 104);
  EXPECT_DOUBLE_EQ(summary.sharing(), 214.0 / 110);
}

TEST(TreeSummaryTest, OfAnInnerNodeAQuerySeesTheBeginningUnlessOthersSeeAll) {
  KvTree tree;
  const int root = tree.addNode(-1, 100).value();
  (void)tree.addQuery(root, 50);
  EXPECT_EQ(summarize(tree).readTokens, 50);
  (void)tree.addQuery(tree.addNode(root, 1).value());
  EXPECT_EQ(summarize(tree).readTokens, 101);
}

} // namespace
} // namespace deft::tree
