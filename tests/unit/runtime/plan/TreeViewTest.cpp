#include "runtime/plan/TreeView.h"
#include "tests/support/Forest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deft::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using tree::KvTree;

std::vector<int> nodesOf(const TreeView &view) {
  std::vector<int> nodes;
  for (const Place &place : view.places)
    nodes.push_back(place.node);
  return nodes;
}

/// Root 0 with children 1, 2, 3; node 4 below 1.
KvTree smallTree() {
  KvTree tree;
  for (const auto &[parent, tokens] : {std::pair{-1, 10}, {0, 5}, {0, 6}, {0, 7}, {1, 3}})
    (void)tree.addNode(parent, tokens).value();
  return tree;
}

TEST(TreeViewTest, PlacesAreInPreorder) {
  TreeView view;
  view.build(smallTree());
  EXPECT_THAT(nodesOf(view), ElementsAre(0, 1, 4, 2, 3));
  EXPECT_EQ(view.places[1].subtreeEnd, 3);
  EXPECT_EQ(view.places[2].parent, 1);
}

TEST(TreeViewTest, MarkedChildrenComeLast) {
  KvTree tree = smallTree();
  (void)tree.addNode(-1, 1);
  TreeView view;
  view.build(tree, {1, 1, 0, 0, 0, 0}); // the root 0 after the root 5, the child 1 after its siblings
  EXPECT_THAT(nodesOf(view), ElementsAre(5, 0, 2, 3, 1, 4));
  view.build(tree, {0, 1, 0, 1, 0, 0}); // among the marked the order stays
  EXPECT_THAT(nodesOf(view), ElementsAre(0, 2, 1, 4, 3, 5));
}

TEST(TreeViewTest, DeadNodesHaveNoPlace) {
  KvTree tree = smallTree();
  ASSERT_TRUE(tree.prune(1));
  TreeView view;
  view.build(tree);
  EXPECT_THAT(nodesOf(view), ElementsAre(0, 2, 3));
}

TEST(TreeViewTest, QueriesGoByPlaceThenTokensSeenThenCallersIndex) {
  KvTree tree = smallTree();
  (void)tree.addQuery(3);
  (void)tree.addQuery(1);
  (void)tree.addQuery(1, 2);
  (void)tree.addQuery(1);
  (void)tree.addQuery(4, 0);
  TreeView view;
  view.build(tree);
  EXPECT_THAT(view.callerIndex, ElementsAre(2, 1, 3, 4, 0));
  EXPECT_THAT(view.seen, ElementsAre(2, 5, 5, 0, 7));
  EXPECT_THAT(view.queryPos, ElementsAre(11, 14, 14, 14, 16));
  EXPECT_EQ(view.places[1].ownBegin, 0);
  EXPECT_EQ(view.places[1].ownEnd, 3);
  EXPECT_EQ(view.places[1].readersEnd, 4);
}

TEST(TreeViewTest, SegmentsAreCutWhereQueriesEndAndEndWhereNobodyReadsOn) {
  KvTree tree;
  (void)tree.addNode(-1, 100);
  (void)tree.addNode(0, 8);
  (void)tree.addNode(0, 0);
  for (int position : {30, 0, 30, 60})
    (void)tree.addQuery(0, position);
  TreeView view;
  view.build(tree);
  EXPECT_THAT(view.segments, ElementsAre(Segment{0, 0, 30, 1, 4}, Segment{0, 30, 30, 3, 4}));
  EXPECT_EQ(view.leafCount(), 0); // nobody reads the leaves

  (void)tree.addQuery(1);
  (void)tree.addQuery(2);
  view.build(tree);
  EXPECT_THAT(view.segments, ElementsAre(Segment{0, 0, 30, 1, 6}, Segment{0, 30, 30, 3, 6},
                                         Segment{0, 60, 40, 4, 6}, Segment{1, 0, 8, 4, 5}));
  EXPECT_EQ(view.leafCount(), 2);
  EXPECT_EQ(view.places[1].leaf, 0);
  EXPECT_EQ(view.places[2].leaf, 1);
}

TEST(TreeViewTest, NothingIsLeftOfTheLastTree) {
  TreeView view;
  view.build(test::randomForest(3));
  view.build(KvTree());
  EXPECT_THAT(view.places, IsEmpty());
  EXPECT_THAT(view.segments, IsEmpty());
  EXPECT_EQ(view.queryCount(), 0);
}

TEST(TreeViewTest, FirstReadersNeverFall) {
  TreeView view;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    view.build(test::randomForest(seed));
    for (std::size_t i = 1; i < view.segments.size(); ++i)
      ASSERT_LE(view.segments[i - 1].queryBegin, view.segments[i].queryBegin);
  }
}

} // namespace
} // namespace deft::plan
