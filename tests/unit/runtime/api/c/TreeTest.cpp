#include "tests/unit/runtime/api/c/TestHandles.h"

#include <gmock/gmock.h>

namespace deft::c_test {
namespace {

TEST(TreeTest, EditsAreThoseOfTheTree) {
  const TreeHandle tree = twoBranches(10, 3);
  deft_tree *const edited = tree.get();
  int32_t branch = -1, query = -1;
  ASSERT_EQ(deft_tree_fork(edited, 0, 4, &branch), DEFT_OK); // the prompt is cut: 0 is its second part now
  ASSERT_EQ(deft_tree_place(edited, branch, 40), DEFT_OK);
  ASSERT_EQ(deft_tree_append(edited, branch, 2), DEFT_OK);
  ASSERT_EQ(deft_tree_add_query(edited, branch, 1, &query), DEFT_OK);
  EXPECT_EQ(query, 2);
  EXPECT_EQ(deft_tree_path_tokens(edited, query), 5);
  EXPECT_EQ(deft_tree_tokens(edited), 18);
  EXPECT_EQ(deft_tree_query_count(edited), 3);

  auto node = sized<deft_node>();
  ASSERT_EQ(deft_tree_get_node(edited, branch, &node), DEFT_OK);
  EXPECT_EQ(node.tokens, 2);
  EXPECT_EQ(node.location, 40);
  EXPECT_EQ(node.depth, 1);
  EXPECT_EQ(node.position, 4);
  deft_query asked = {};
  ASSERT_EQ(deft_tree_get_query(edited, query, &asked), DEFT_OK);
  EXPECT_EQ(asked.node, branch);
  EXPECT_EQ(asked.position, 1);

  int32_t *nodes = nullptr;
  size_t count = 0;
  ASSERT_EQ(deft_tree_get_nodes(edited, &nodes, &count), DEFT_OK);
  const Owned<int32_t> owned(nodes);
  ASSERT_EQ(count, 5U);
  EXPECT_EQ(nodes[1], 0);
  EXPECT_EQ(nodes[4], branch);

  ASSERT_EQ(deft_tree_remove_query(edited, 0), DEFT_OK);
  ASSERT_EQ(deft_tree_prune(edited, 0), DEFT_OK);
  EXPECT_EQ(deft_tree_is_alive(edited, 0), 0);
  EXPECT_EQ(deft_tree_query_count(edited), 1);
  ASSERT_EQ(deft_tree_clear_queries(edited), DEFT_OK);
  EXPECT_EQ(deft_tree_query_count(edited), 0);
  EXPECT_EQ(deft_tree_get_node(edited, 0, &node), DEFT_USAGE);
  EXPECT_STREQ(deft_error_text(), "there is no living node 0");
}

TEST(TreeTest, AcceptedTokensAreToldAndGivenBack) {
  const auto tree = made<TreeHandle>(deft_tree_make);
  int32_t sequence = -1, first = -1, second = -1;
  ASSERT_EQ(deft_tree_add_root(tree.get(), 5, 0, &sequence), DEFT_OK);
  ASSERT_EQ(deft_tree_add_child(tree.get(), sequence, 1, 20, &first), DEFT_OK);
  ASSERT_EQ(deft_tree_add_child(tree.get(), first, 2, 30, &second), DEFT_OK);
  deft_stretch *stretches = nullptr;
  size_t count = 0;
  ASSERT_EQ(deft_tree_accept(tree.get(), sequence, second, &stretches, &count), DEFT_OK);
  const Owned<deft_stretch> owned(stretches);
  ASSERT_EQ(count, 2U);
  EXPECT_EQ(stretches[0].location, 20);
  EXPECT_EQ(stretches[1].location, 30);
  EXPECT_EQ(stretches[1].tokens, 2);
  EXPECT_EQ(deft_tree_accept(tree.get(), sequence, 77, &stretches, &count), DEFT_DIAGNOSTICS);
  EXPECT_EQ(stretches, nullptr);
}

TEST(TreeTest, QueriesAreReplacedAsAWhole) {
  const TreeHandle tree = twoBranches(4, 2);
  const deft_query queries[] = {{2, DEFT_WHOLE}, {1, 1}, {0, DEFT_WHOLE}};
  ASSERT_EQ(deft_tree_set_queries(tree.get(), queries, 3), DEFT_OK);
  EXPECT_EQ(deft_tree_query_count(tree.get()), 3);
  EXPECT_EQ(deft_tree_path_tokens(tree.get(), 1), 5);
  EXPECT_EQ(deft_tree_set_queries(tree.get(), nullptr, 3), DEFT_USAGE);
  EXPECT_STREQ(deft_error_text(), "deft_tree_set_queries: queries is null");
  EXPECT_EQ(deft_tree_query_count(tree.get()), 3);
  EXPECT_EQ(deft_tree_set_queries(tree.get(), nullptr, 0), DEFT_OK);
  EXPECT_EQ(deft_tree_query_count(tree.get()), 0);
}

TEST(TreeTest, TextGoesAndComesBack) {
  const TreeHandle tree = twoBranches(10, 3);
  const auto json = made<Owned<char>>(deft_tree_get_json, tree.get());
  const auto read = made<TreeHandle>(deft_tree_parse, json.get());
  ASSERT_TRUE(read);
  EXPECT_EQ(deft_tree_tokens(read.get()), 16);
  const auto copy = made<TreeHandle>(deft_tree_copy, read.get());
  ASSERT_EQ(deft_tree_append(copy.get(), 1, 5), DEFT_OK);
  EXPECT_EQ(deft_tree_tokens(read.get()), 16);
  EXPECT_EQ(deft_tree_tokens(copy.get()), 21);
}

} // namespace
} // namespace deft::c_test
