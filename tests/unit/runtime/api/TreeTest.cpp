#include <deft/tree.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(TreeTest, GrowsForksAndSplits) {
  Tree tree;
  const int root = tree.addRoot(10, 100).value();
  const int child = tree.addChild(root, 3, 200).value();
  const int query = tree.addQuery(root, 4).value();
  EXPECT_EQ(tree.pathTokens(query), 4);
  const int branch = tree.fork(root, 6).value(); // parts inside the root
  const int upper = tree.node(root).parent;
  EXPECT_EQ(tree.node(upper).tokens, 6);
  EXPECT_EQ(tree.node(root).tokens, 4);
  EXPECT_EQ(tree.node(root).location, 106);
  EXPECT_EQ(tree.node(branch).parent, upper);
  EXPECT_EQ(tree.node(child).position, 10);
  EXPECT_EQ(tree.pathTokens(query), 4);
  EXPECT_THAT(tree.nodesInPreorder(), ElementsAre(upper, root, child, branch));
  EXPECT_TRUE(tree.append(branch, 2));
  EXPECT_EQ(tree.tokens(), 15);
}

TEST(TreeTest, AFailedCallSaysWhyAndChangesNothing) {
  Tree tree;
  const int root = tree.addRoot(10).value();
  (void)tree.addChild(root, 1).value();
  EXPECT_FALSE(tree.append(root, 1)); // not a leaf
  EXPECT_FALSE(tree.addRoot(-1));
  EXPECT_FALSE(tree.addQuery(root, 11));
  EXPECT_FALSE(tree.prune(7));
  EXPECT_FALSE(tree.accept(1, root));
  EXPECT_THAT(tree.addChild(-1, 3).error().hint, HasSubstr("a root is added by a call of its own"));
  EXPECT_EQ(tree.tokens(), 11);
  EXPECT_EQ(tree.queryCount(), 0);
}

TEST(TreeTest, TextGoesThereAndBack) {
  Tree tree;
  const int root = tree.addRoot(10).value();
  (void)tree.addQuery(tree.addChild(root, 3).value()).value();
  (void)tree.addQuery(root, 2).value();
  const Tree again = Tree::parse(tree.json()).value();
  EXPECT_EQ(again.json(), tree.json());
  EXPECT_EQ(again.pathTokens(0), 13);
  EXPECT_EQ(again.pathTokens(1), 2);
  EXPECT_FALSE(Tree::parse("{}"));
}

TEST(TreeTest, ANodeWithoutAPlaceSaysSo) {
  Tree tree;
  const int root = tree.addRoot(10).value(), child = tree.addChild(root, 3).value();
  EXPECT_EQ(tree.node(root).location, Node::kNotPlaced);
  ASSERT_TRUE(tree.place(child, 40));
  const int branch = tree.fork(root, 6).value();
  EXPECT_EQ(tree.node(root).location, Node::kNotPlaced); // its second part, as its first
  EXPECT_EQ(tree.node(tree.node(root).parent).location, Node::kNotPlaced);
  EXPECT_EQ(tree.node(branch).location, Node::kNotPlaced);
  EXPECT_EQ(tree.node(child).location, 40);
  EXPECT_FALSE(tree.place(child, Node::kNotPlaced));
}

TEST(TreeTest, ATextWithoutLocationsPlacesNothing) {
  Tree tree;
  (void)tree.addRoot(10, 7).value();
  EXPECT_EQ(Tree::parse(tree.json()).value().node(0).location, Node::kNotPlaced);
  EXPECT_EQ(Tree::parse(R"({"format": "deftc-tree", "version": 2,
      "nodes": [{"parent": -1, "tokens": 10, "location": 7}], "queries": []})")
                .value()
                .node(0)
                .location,
            7);
}

TEST(TreeTest, ACopyIsATreeOfItsOwn) {
  Tree tree;
  const int root = tree.addRoot(10).value();
  Tree copy = tree;
  EXPECT_TRUE(copy.append(root, 5));
  EXPECT_EQ(tree.tokens(), 10);
  EXPECT_EQ(copy.tokens(), 15);
}

TEST(TreeTest, WhatIsNotThereIsEmpty) {
  const Tree tree;
  EXPECT_FALSE(tree.isAlive(0));
  EXPECT_EQ(tree.node(5).tokens, 0);
  EXPECT_EQ(tree.query(0).node, -1);
  EXPECT_EQ(tree.pathTokens(-1), 0);
}

} // namespace
} // namespace deft
