#include "runtime/tree/TreeEdit.h"

#include <gtest/gtest.h>

#include <vector>

namespace deft::tree {
namespace {

using Kind = TreeEdit::Kind;

/// A prompt, a sequence below it with two guesses, and a branch that is pruned: by edits, and by the tree's
/// own functions.
TEST(TreeEditTest, EditsDoWhatTheTreesFunctionsDo) {
  KvTree edited, called;
  const std::vector<TreeEdit> edits = {
      {Kind::AddNode, -1, 100}, {Kind::AddNode, 0, 10}, {Kind::AddNode, 1, 1},
      {Kind::AddNode, 2, 1},    {Kind::AddNode, 0, 7},  {Kind::Accept, 1, 3},
      {Kind::Append, 1, 5},     {Kind::Split, 0, 60},   {Kind::Prune, 4, 0}};
  for (const TreeEdit &edit : edits)
    ASSERT_TRUE(apply(edit, edited));
  ASSERT_TRUE(called.addNode(-1, 100));
  for (const auto &[parent, tokens] : {std::pair(0, 10), {1, 1}, {2, 1}, {0, 7}})
    ASSERT_TRUE(called.addNode(parent, tokens));
  ASSERT_TRUE(called.accept(1, 3));
  ASSERT_TRUE(called.append(1, 5));
  ASSERT_TRUE(called.split(0, 60));
  ASSERT_TRUE(called.prune(4));
  EXPECT_EQ(edited.nodes(), called.nodes());
  EXPECT_EQ(edited.generation(), called.generation());
  EXPECT_EQ(edited.nodes()[1].tokens, 10 + 2 + 5);
  EXPECT_EQ(edited.tokens(), 117);
}

TEST(TreeEditTest, AnEditThatFailsLeavesTheTree) {
  KvTree tree;
  ASSERT_TRUE(tree.addNode(-1, 100));
  ASSERT_TRUE(tree.addNode(0, 10));
  const std::vector<Node> before = tree.nodes();
  const std::uint64_t generation = tree.generation();
  for (const TreeEdit &edit :
       {TreeEdit{Kind::AddNode, 7, 1}, TreeEdit{Kind::AddNode, 0, -1}, TreeEdit{Kind::Append, 0, 1},
        TreeEdit{Kind::Split, 1, 11}, TreeEdit{Kind::Prune, 2, 0}, TreeEdit{Kind::Accept, 1, 0}}) {
    const auto done = apply(edit, tree);
    EXPECT_FALSE(done) << static_cast<int>(edit.kind);
    EXPECT_EQ(tree.nodes(), before) << static_cast<int>(edit.kind);
  }
  EXPECT_EQ(tree.generation(), generation);
}

} // namespace
} // namespace deft::tree
