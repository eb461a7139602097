#include "runtime/tree/ExpandedNodes.h"

#include "tests/support/Forest.h"

#include <gtest/gtest.h>

#include <vector>

namespace deft::tree {
namespace {

std::string errorOf(const KvTree &tree, const std::vector<ExpandedNode> &nodes) {
  const auto checked = checkExpanded(tree, nodes);
  return checked ? "" : checked.error().message;
}

TEST(ExpandedNodesTest, WhatIsNoNodeOfTheTreeIsNamed) {
  KvTree tree = test::levelTree({1, 2}, {100, 10});
  EXPECT_EQ(errorOf(tree, {}), "");
  EXPECT_EQ(errorOf(tree, {{0, 100, 32}, {2, 10, 0}}), "");
  EXPECT_EQ(errorOf(tree, {{3, 10, 0}}), "node 3 has expanded K and V, and the tree has no such node");
  EXPECT_EQ(errorOf(tree, {{-1, 10, 0}}), "node -1 has expanded K and V, and the tree has no such node");
  EXPECT_EQ(errorOf(tree, {{0, 100, 0}, {0, 100, 0}}), "node 0 has expanded K and V twice");
  ASSERT_TRUE(tree.prune(2));
  EXPECT_EQ(errorOf(tree, {{2, 10, 0}}), "node 2 has expanded K and V, and the tree has no such node");
}

TEST(ExpandedNodesTest, AnotherLengthThanTheNodesIsNamed) {
  const KvTree tree = test::levelTree({1, 2}, {100, 10});
  EXPECT_EQ(errorOf(tree, {{0, 99, 0}}), "node 0 has 100 tokens, and its expanded K and V have 99");
  EXPECT_EQ(errorOf(tree, {{1, 11, 0}}), "node 1 has 10 tokens, and its expanded K and V have 11");
  EXPECT_EQ(errorOf(tree, {{1, 10, -1}}),
            "location -1 of the expanded node 1 is not between 0 and 1073741814");
  EXPECT_EQ(errorOf(tree, {{1, 10, 1073741815}}),
            "location 1073741815 of the expanded node 1 is not between 0 and 1073741814");
}

} // namespace
} // namespace deft::tree
