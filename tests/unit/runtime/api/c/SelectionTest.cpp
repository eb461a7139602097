#include "tests/unit/runtime/api/c/TestHandles.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace deft::c_test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

using SelectionHandle = std::unique_ptr<deft_selection, Destroy<deft_selection_destroy>>;

AttentionHandle compiled(const char *select) {
  const std::string text =
      std::string("attention a { query_heads = 2; kv_heads = 1; head_dim = 64; kv_cache = contiguous; ") +
      select + "}";
  return made<AttentionHandle>(deft_attention_compile, text.c_str(), nullptr);
}

TEST(SelectionTest, SelectsAndReadsWhatIsListed) {
  const AttentionHandle attention = compiled("select { budget = 2; keep_last = 1; }");
  const auto runtime = made<RuntimeHandle>(deft_runtime_make, nullptr);
  const auto tree = made<TreeHandle>(deft_tree_make);
  int32_t root = -1;
  ASSERT_EQ(deft_tree_add_root(tree.get(), 30, 0, &root), DEFT_OK);
  ASSERT_EQ(deft_tree_add_query(tree.get(), root, DEFT_WHOLE, nullptr), DEFT_OK);
  const auto plan = made<PlanHandle>(deft_plan_make, attention.get(), tree.get(), nullptr);
  const auto selection = made<SelectionHandle>(deft_selection_make, attention.get(), 0);

  constexpr uint16_t one = 0x3f80, two = 0x4000, nan = 0x7fc0;
  std::vector<uint16_t> q(2 * 64, one), k(30 * 64, one), v(30 * 64, one), out(2 * 64, 0);
  std::fill_n(k.begin() + 11 * 64, 64, two);
  const int64_t rows[] = {1, 2, 64}, cache[] = {30, 1, 64};
  const auto tensor = [](void *data, const int64_t *shape) {
    deft_tensor made{};
    made.size = sizeof made;
    made.data = data;
    made.dtype = DEFT_BF16;
    made.ndim = 3;
    made.shape = shape;
    return made;
  };
  const deft_tensor qs = tensor(q.data(), rows), ks = tensor(k.data(), cache), vs = tensor(v.data(), cache),
                    outs = tensor(out.data(), rows);
  deft_inputs inputs{};
  inputs.size = sizeof inputs;
  inputs.q = &qs;
  inputs.k = &ks;
  inputs.v = &vs;
  deft_outputs outputs{};
  outputs.size = sizeof outputs;
  outputs.out = &outs;
  EXPECT_EQ(
      deft_runtime_run_sparse(runtime.get(), attention.get(), plan.get(), selection.get(), &inputs, &outputs),
      DEFT_USAGE);
  EXPECT_THAT(deft_error_text(), HasSubstr("the selection is empty"));
  ASSERT_EQ(deft_runtime_run_selecting(runtime.get(), attention.get(), plan.get(), selection.get(), &inputs,
                                       &outputs),
            DEFT_OK)
      << deft_error_text();
  EXPECT_THAT(out, Each(one));
  deft_selection_view view{};
  view.size = sizeof view;
  ASSERT_EQ(deft_selection_get(selection.get(), &view), DEFT_OK);
  EXPECT_EQ(view.queries, 1);
  EXPECT_EQ(view.lists, 1);
  EXPECT_EQ(view.budget, 2);
  EXPECT_EQ(view.counts[0], 2);
  EXPECT_THAT(std::vector<int32_t>(view.positions, view.positions + 2), ElementsAre(11, 29));

  std::fill(v.begin(), v.end(), nan);
  for (const int token : {11, 29})
    std::fill_n(v.begin() + token * 64, 64, two);
  ASSERT_EQ(
      deft_runtime_run_sparse(runtime.get(), attention.get(), plan.get(), selection.get(), &inputs, &outputs),
      DEFT_OK)
      << deft_error_text();
  EXPECT_THAT(out, Each(two));
}

TEST(SelectionTest, ASpecThatSelectsNothingHasNone) {
  const AttentionHandle attention = compiled("");
  deft_selection *selection = nullptr;
  EXPECT_EQ(deft_selection_make(attention.get(), 0, &selection), DEFT_USAGE);
  EXPECT_EQ(selection, nullptr);
  EXPECT_THAT(deft_error_text(), HasSubstr("`a` selects nothing"));
}

TEST(SelectionTest, WhatTheSpecSaysIsTold) {
  const AttentionHandle attention =
      compiled("select { budget = tune(64, 16); by = query; keep_first = 2; keep_last = 3; }");
  auto info = sized<deft_selection_info>();
  ASSERT_EQ(deft_attention_get_selection(attention.get(), &info), DEFT_OK);
  ASSERT_EQ(info.budget_count, 2U);
  EXPECT_EQ(info.budgets[0], 64);
  EXPECT_EQ(info.budgets[1], 16);
  EXPECT_EQ(info.by, DEFT_SELECT_BY_QUERY);
  EXPECT_EQ(info.keep_first, 2);
  EXPECT_EQ(info.keep_last, 3);
  const AttentionHandle plain = compiled("");
  ASSERT_EQ(deft_attention_get_selection(plain.get(), &info), DEFT_OK);
  EXPECT_EQ(info.budget_count, 0U);
  EXPECT_EQ(deft_attention_get_selection(nullptr, &info), DEFT_USAGE);
}

TEST(SelectionTest, PollutedTokensAreHandedOutAndCorrected) {
  const deft_pool_options options = {.size = sizeof options, .pages = 8, .page_size = 4, .reserved = 0};
  const auto sequences = made<SequencesHandle>(deft_sequence_tree_make, &options);
  int32_t node = -1;
  ASSERT_EQ(deft_sequence_tree_add_root(sequences.get(), 6, &node), DEFT_OK);
  const deft_node_tokens marked[] = {{node, 2, 1}, {node, 4, 2}}, none[] = {{node, 5, 2}};
  ASSERT_EQ(deft_sequence_tree_pollute(sequences.get(), marked, 2), DEFT_OK);
  EXPECT_NE(deft_sequence_tree_pollute(sequences.get(), none, 1), DEFT_OK);
  deft_node_tokens *found = nullptr;
  size_t count = 0;
  ASSERT_EQ(deft_sequence_tree_get_polluted(sequences.get(), &found, &count), DEFT_OK);
  ASSERT_EQ(count, 2U);
  EXPECT_EQ(found[1].first, 4);
  EXPECT_EQ(found[1].tokens, 2);
  ASSERT_EQ(deft_sequence_tree_correct(sequences.get(), found, count), DEFT_OK);
  deft_free(found);
  ASSERT_EQ(deft_sequence_tree_get_polluted(sequences.get(), &found, &count), DEFT_OK);
  EXPECT_EQ(count, 0U);
  deft_free(found);
}

} // namespace
} // namespace deft::c_test
