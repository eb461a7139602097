#include "runtime/capture/StepTree.h"

#include "tests/unit/runtime/capture/Steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deft::capture {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(StepTreeTest, LengthsThatOnlyTheDeviceHadLengthenLeaves) {
  Step step = test::branches();
  step.lengths = {46, 52};
  const auto tree = treeOf(step);
  ASSERT_TRUE(tree) << tree.error().message;
  EXPECT_EQ(tree->nodes()[1].tokens, 6);
  EXPECT_EQ(tree->nodes()[2].tokens, 12);
  EXPECT_EQ(tree->pathTokens(tree->queries()[1]), 52);
  step.lengths = {45, 49};
  EXPECT_EQ(treeOf(step).error().message,
            "query 0 has 45 tokens on the device and 46 in `tree`, which is not "
            "how a leaf grows");
}

TEST(StepTreeTest, DraftsAreNodesOfOneToken) {
  Step step = test::drafted();
  step.drafts[0].gained = 2;
  const auto tree = treeOf(step);
  ASSERT_TRUE(tree) << tree.error().message;
  ASSERT_EQ(tree->nodes().size(), 4u);
  EXPECT_EQ(tree->nodes()[0].tokens, 22);
  for (int query = 0; query < 3; ++query) {
    const tree::Query &own = tree->queries()[static_cast<std::size_t>(query)];
    const tree::Node &node = tree->nodes()[static_cast<std::size_t>(own.node)];
    EXPECT_EQ(node.location, 22 + query);
    EXPECT_EQ(tree->pathTokens(own), query == 0 ? 23 : 24);
  }
}

TEST(StepTreeTest, DraftsThatAreNoTreeAreNamed) {
  Step step = test::drafted();
  step.drafts[0].sees[2] = {1, 2};
  EXPECT_EQ(treeOf(step).error().message, "the drafts of request 0 are no tree: look at the row of draft 2");
  step.drafts[0].sees = {};
  EXPECT_THAT(treeOf(step).error().message, HasSubstr("is not in the file: only the GPU knew it"));
  step = test::drafted();
  step.drafts[0].depths = {0, 1, 2};
  EXPECT_THAT(treeOf(step).error().message,
              HasSubstr("draft 2 of request 0 has depth 2 and 1 drafts above it"));
  step = test::drafted();
  step.drafts[0].request.count = 2;
  step.drafts[0].sees.pop_back();
  EXPECT_EQ(treeOf(step).error().message, "a query of `tree` belongs to the stand-in of a draft");
}

TEST(StepTreeTest, PagesKeepTheirOrderInAPoolWithoutGaps) {
  const Step step = test::branches();
  tree::KvTree tree = step.tree;
  const auto place = placeStep(step, tree);
  ASSERT_TRUE(place) << place.error().message;
  EXPECT_TRUE(place->isAsCaptured);
  EXPECT_EQ(place->pagesAdded, 0);
  EXPECT_EQ(place->cache.poolPages, 4);
  EXPECT_THAT(place->cache.pageTable, ElementsAre(2, 3, 0, 1)); // of 7, 8, 3, 4
  EXPECT_EQ(tree.nodes()[1].location, 40);
  EXPECT_EQ(tree.nodes()[2].location, 50); // its entry 8 is the fourth
}

TEST(StepTreeTest, PagesThatTheTableLacksAreAdded) {
  Step step = test::branches();
  step.pageTable->erase(step.pageTable->begin() + 1);
  tree::KvTree tree = step.tree;
  const auto place = placeStep(step, tree);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->pagesAdded, 1);
  EXPECT_THAT(place->cache.pageTable, ElementsAre(1, 2, 3, 0));
}

TEST(StepTreeTest, WithoutATableNodesLieInOrder) {
  Step step = test::branches();
  step.pageTable.reset();
  tree::KvTree tree = step.tree;
  const auto place = placeStep(step, tree);
  ASSERT_TRUE(place);
  EXPECT_FALSE(place->isAsCaptured);
  EXPECT_EQ(tree.nodes()[2].location, 46);
}

TEST(StepTreeTest, DeadNodesAreLeftOut) {
  tree::KvTree tree = test::branches().tree;
  ASSERT_TRUE(tree.prune(1));
  const auto ordered = inFileOrder(tree);
  ASSERT_TRUE(ordered);
  EXPECT_EQ(ordered->nodes().size(), 2u);
  EXPECT_EQ(ordered->queries().size(), 1u);
  EXPECT_EQ(ordered->queries()[0].node, 1);
}

TEST(StepTreeTest, StretchesAreOfNeighbours) {
  EXPECT_THAT(stretchesOf({0, 1, 2, 5, 6}, {4, 5, -1, 6, 7}),
              ElementsAre(PageStretch{0, 4, 2}, PageStretch{5, 6, 2}));
  EXPECT_THAT(entriesOf(test::branches().tree, 16), ElementsAre(0, 1, 2, 8));
}

} // namespace
} // namespace deft::capture
