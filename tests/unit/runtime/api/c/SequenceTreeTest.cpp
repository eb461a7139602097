#include "tests/unit/runtime/api/c/TestHandles.h"

#include <gmock/gmock.h>

#include <vector>

namespace deft::c_test {
namespace {

using testing::HasSubstr;

SequencesHandle pool(int64_t pages) {
  const deft_pool_options options = {.size = sizeof options, .pages = pages, .page_size = 4, .reserved = 0};
  return made<SequencesHandle>(deft_sequence_tree_make, &options);
}

TEST(SequenceTreeTest, PagesAreSharedAndCopiedWhenWritten) {
  const SequencesHandle sequences = pool(8);
  int32_t prompt = -1, left = -1, right = -1;
  ASSERT_EQ(deft_sequence_tree_add_root(sequences.get(), 6, &prompt), DEFT_OK);
  ASSERT_EQ(deft_sequence_tree_fork(sequences.get(), prompt, DEFT_WHOLE, &left), DEFT_OK);
  ASSERT_EQ(deft_sequence_tree_fork(sequences.get(), prompt, DEFT_WHOLE, &right), DEFT_OK);
  deft_token_copy *copies = nullptr;
  size_t count = 0;
  for (const int32_t branch : {left, right}) {
    ASSERT_EQ(deft_sequence_tree_append(sequences.get(), branch, 3, &copies, &count), DEFT_OK);
    deft_free(copies);
  }
  const deft_tree *const tree = deft_sequence_tree_get_tree(sequences.get());
  EXPECT_EQ(deft_tree_tokens(tree), 12);
  const int32_t *entries = nullptr;
  ASSERT_EQ(deft_sequence_tree_get_page_table(sequences.get(), &entries, &count), DEFT_OK);
  EXPECT_GE(count, 4U);
  EXPECT_EQ(deft_sequence_tree_slot(sequences.get(), prompt, 6), -1);
  EXPECT_NE(deft_sequence_tree_slot(sequences.get(), left, 2),
            deft_sequence_tree_slot(sequences.get(), right, 2));

  const int64_t free = deft_sequence_tree_free_pages(sequences.get());
  ASSERT_EQ(deft_sequence_tree_prune(sequences.get(), right), DEFT_OK);
  EXPECT_GT(deft_sequence_tree_free_pages(sequences.get()), free);
  EXPECT_EQ(deft_sequence_tree_append(sequences.get(), left, 1000, &copies, &count), DEFT_DIAGNOSTICS);
  EXPECT_THAT(deft_error_text(), HasSubstr("pages"));
  EXPECT_EQ(copies, nullptr);
  EXPECT_EQ(deft_tree_tokens(tree), 9);
}

TEST(SequenceTreeTest, DraftsAreAcceptedWithTheirCopies) {
  const SequencesHandle sequences = pool(16);
  int32_t sequence = -1;
  ASSERT_EQ(deft_sequence_tree_add_root(sequences.get(), 3, &sequence), DEFT_OK);
  const int32_t parents[] = {DEFT_NO_NODE, 0, 0, 2};
  int32_t nodes[4] = {-1, -1, -1, -1};
  ASSERT_EQ(deft_sequence_tree_add_token_tree(sequences.get(), sequence, parents, 4, nodes), DEFT_OK);
  const deft_query queries[] = {{nodes[1], DEFT_WHOLE}, {nodes[3], DEFT_WHOLE}};
  ASSERT_EQ(deft_sequence_tree_set_queries(sequences.get(), queries, 2), DEFT_OK);
  EXPECT_EQ(deft_tree_path_tokens(deft_sequence_tree_get_tree(sequences.get()), 1), 6);
  ASSERT_EQ(deft_sequence_tree_clear_queries(sequences.get()), DEFT_OK);
  ASSERT_EQ(deft_sequence_tree_add_query(sequences.get(), sequence, 2, nullptr), DEFT_OK);
  std::vector<int64_t> from;
  for (const int32_t node : {nodes[0], nodes[2], nodes[3]})
    from.push_back(deft_sequence_tree_slot(sequences.get(), node, 0));
  deft_token_copy *copies = nullptr;
  size_t count = 0;
  ASSERT_EQ(deft_sequence_tree_accept(sequences.get(), sequence, nodes[3], &copies, &count), DEFT_OK);
  const Owned<deft_token_copy> owned(copies);
  // Each of the three was copied to where the sequence has it now, or was there already.
  for (int token = 0; token < 3; ++token) {
    int64_t at = from[static_cast<std::size_t>(token)];
    for (size_t i = 0; i < count; ++i)
      if (at >= copies[i].from && at < copies[i].from + copies[i].tokens) {
        at += copies[i].to - copies[i].from;
        break;
      }
    EXPECT_EQ(at, deft_sequence_tree_slot(sequences.get(), sequence, 3 + token));
  }
}

TEST(SequenceTreeTest, ItsTreeIsChangedThroughItAlone) {
  const SequencesHandle sequences = pool(8);
  ASSERT_EQ(deft_sequence_tree_add_root(sequences.get(), 6, nullptr), DEFT_OK);
  auto *const tree = const_cast<deft_tree *>(deft_sequence_tree_get_tree(sequences.get()));
  EXPECT_EQ(deft_tree_append(tree, 0, 1), DEFT_USAGE);
  EXPECT_THAT(deft_error_message(), HasSubstr("belongs to sequences"));
  EXPECT_EQ(deft_tree_tokens(tree), 6);
  deft_tree_destroy(tree); // does nothing but say so
  EXPECT_EQ(deft_tree_tokens(tree), 6);
  const auto copy = made<TreeHandle>(deft_tree_copy, tree); // a tree of its own
  EXPECT_EQ(deft_tree_append(copy.get(), 0, 1), DEFT_OK);
}

TEST(SequenceTreeTest, AContiguousPoolHasNoTable) {
  const deft_pool_options options = {.size = sizeof options, .pages = 100, .page_size = 0, .reserved = 0};
  const auto sequences = made<SequencesHandle>(deft_sequence_tree_make, &options);
  const int32_t *entries = nullptr;
  size_t count = 7;
  ASSERT_EQ(deft_sequence_tree_get_page_table(sequences.get(), &entries, &count), DEFT_OK);
  EXPECT_EQ(count, 0U);
  deft_sequence_tree *none = nullptr;
  const deft_pool_options reserved = {.size = sizeof options, .pages = 100, .page_size = 0, .reserved = 1};
  EXPECT_EQ(deft_sequence_tree_make(&reserved, &none), DEFT_USAGE);
  EXPECT_STREQ(deft_error_text(), "deft_pool_options::reserved is 1, not 0");
}

} // namespace
} // namespace deft::c_test
