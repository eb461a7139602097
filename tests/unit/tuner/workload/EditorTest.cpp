#include "tuner/workload/Editor.h"

#include <gtest/gtest.h>

namespace deft::workload {
namespace {

using tree::Query;
using Kind = tree::TreeEdit::Kind;

class EditorTest : public testing::Test {
protected:
  tree::KvTree tree;
  std::vector<tree::TreeEdit> edits;
  std::vector<Query> queries;
  Editor editor{tree, edits, queries};
};

/// Who has the edits has the tree.
TEST_F(EditorTest, EditsMakeTheSameTreeElsewhere) {
  const int root = editor.addNode(-1, 50), leaf = editor.addNode(root, 8), other = editor.addNode(root, 3);
  editor.append(leaf, 4);
  const int first = editor.split(root, 20);
  const int guess = editor.addNode(leaf, 1);
  editor.accept(leaf, guess);
  editor.prune(other);
  ASSERT_FALSE(editor.hasFailed());
  EXPECT_EQ(tree.nodes()[root].parent, first) << "what is cut off has the first tokens";
  EXPECT_EQ(editor.tokensOf(first), 20);
  EXPECT_EQ(editor.tokensOf(leaf), 8 + 4 + 1);
  EXPECT_EQ(edits.size(), 8U);
  tree::KvTree again;
  for (const tree::TreeEdit &edit : edits)
    ASSERT_TRUE(tree::apply(edit, again));
  EXPECT_EQ(again.nodes(), tree.nodes());
}

TEST_F(EditorTest, TheFirstErrorIsKeptAndNothingFollowsIt) {
  const int root = editor.addNode(-1, 50), leaf = editor.addNode(root, 8);
  editor.append(root, 1); // has a child
  ASSERT_TRUE(editor.hasFailed());
  const std::string message = editor.error()->message;
  EXPECT_EQ(editor.addNode(root, 1), -1);
  EXPECT_EQ(editor.split(root, 20), -1);
  editor.append(leaf, 1);
  editor.prune(77);
  EXPECT_EQ(editor.error()->message, message);
  EXPECT_EQ(editor.tokensOf(leaf), 0);
  EXPECT_EQ(edits.size(), 2U);
  EXPECT_EQ(tree.nodes()[leaf].tokens, 8);
}

TEST_F(EditorTest, QueriesKeepTheOrderOfTheCalls) {
  const int root = editor.addNode(-1, 50), leaf = editor.addNode(root, 8);
  editor.query(leaf);
  editor.query(root, 30);
  EXPECT_EQ(queries, (std::vector{Query{leaf, Query::kWhole}, Query{root, 30}}));
  EXPECT_TRUE(tree.queries().empty()) << "they are given to the tree when the step is done";
}

} // namespace
} // namespace deft::workload
