#include <deft/deft.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace deft {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::uint16_t kOne = 0x3f80, kTwo = 0x4000; // in bf16

Attention compiled(const std::string &items) {
  return compileSpec("attention a { query_heads = 4; kv_heads = 2; head_dim = 64; kv_cache = contiguous; " +
                     items + " }")
      .value();
}

/// A prompt of 100 tokens and two branches of 5; keys are 1, values are their tokens' number of hundreds.
struct Problem {
  explicit Problem(const std::string &select) : attention(compiled(select)) {
    const int root = tree.addRoot(100, 0).value();
    for (const int location : {100, 105})
      (void)tree.addQuery(leaves.emplace_back(tree.addChild(root, 5, location).value())).value();
    q.assign(2 * 4 * 64, kOne);
    k.assign(120 * 2 * 64, kOne);
    v.assign(k.size(), kOne);
    out.assign(q.size(), 0);
  }
  /// The key of a token for one KV head is twice as long.
  void raise(int location, int kvHead) { std::fill_n(k.begin() + (location * 2 + kvHead) * 64, 64, kTwo); }
  Inputs inputs() const { return {.q = q.data(), .k = k.data(), .v = v.data()}; }
  Outputs outputs() { return {.out = out.data()}; }

  Attention attention;
  Runtime runtime = Runtime::create({.threads = 2}).value();
  Tree tree;
  std::vector<int> leaves;
  std::vector<std::uint16_t> q, k, v, out;
};

TEST(SelectionTest, ListsAreOfTheBestTokensOfEachHead) {
  Problem problem("select { budget = 3; keep_last = 1; }");
  problem.raise(40, 0);
  problem.raise(7, 1);
  problem.raise(106, 1); // position 101 of the second branch
  const Plan plan = Plan::make(problem.attention, problem.tree).value();
  auto selection = Selection::make(problem.attention).value();
  EXPECT_EQ(selection.queryCount(), 0);
  const auto ran =
      problem.runtime.runSelecting(problem.attention, plan, selection, problem.inputs(), problem.outputs());
  ASSERT_TRUE(ran) << ran.error().text();
  EXPECT_THAT(problem.out, Each(kOne));
  EXPECT_EQ(selection.queryCount(), 2);
  EXPECT_EQ(selection.lists(), 2);
  EXPECT_EQ(selection.budget(), 3);
  EXPECT_THAT(selection.positions(0, 0), ElementsAre(0, 40, 104));
  EXPECT_THAT(selection.positions(0, 1), ElementsAre(0, 7, 104));
  EXPECT_THAT(selection.positions(1, 1), ElementsAre(7, 101, 104));
  EXPECT_THAT(selection.positions(2, 0), ElementsAre());
  EXPECT_EQ(selection.allPositions().size(), 12u);
  EXPECT_THAT(selection.counts(), Each(3));
}

TEST(SelectionTest, SparseRunsReadWhatIsListedAlone) {
  Problem problem("select { budget = 2; }");
  problem.raise(40, 0);
  problem.raise(41, 0);
  problem.raise(40, 1);
  problem.raise(41, 1);
  const Plan plan = Plan::make(problem.attention, problem.tree).value();
  auto selection = Selection::make(problem.attention).value();
  ASSERT_TRUE(
      problem.runtime.runSelecting(problem.attention, plan, selection, problem.inputs(), problem.outputs()));
  // Another layer: other values, and NaN wherever it must not look.
  std::fill(problem.v.begin(), problem.v.end(), std::uint16_t{0x7fc0});
  std::fill_n(problem.v.begin() + 40 * 128, 2 * 128, kTwo);
  const auto ran =
      problem.runtime.runSparse(problem.attention, plan, selection, problem.inputs(), problem.outputs());
  ASSERT_TRUE(ran) << ran.error().text();
  EXPECT_THAT(problem.out, Each(kTwo));
}

TEST(SelectionTest, ASelectionIsOfTheTreeAsItWas) {
  Problem problem("select { budget = 2; }");
  Plan plan = Plan::make(problem.attention, problem.tree).value();
  auto selection = Selection::make(problem.attention).value();
  const auto sparse = [&] {
    return problem.runtime.runSparse(problem.attention, plan, selection, problem.inputs(), problem.outputs());
  };
  EXPECT_THAT(sparse().error().message, HasSubstr("the selection is empty"));
  ASSERT_TRUE(
      problem.runtime.runSelecting(problem.attention, plan, selection, problem.inputs(), problem.outputs()));
  EXPECT_TRUE(sparse());
  ASSERT_TRUE(problem.tree.append(problem.leaves[1], 1));
  ASSERT_TRUE(plan.advance(problem.tree));
  EXPECT_THAT(sparse().error().message, HasSubstr("the selection is stale"));
}

TEST(SelectionTest, ASelectionIsOfTheMaskOfDraftsAsItWas) {
  const Attention attention =
      compileSpec("attention a { query_heads = 4; kv_heads = 2; head_dim = 64; select { budget = 2; } }")
          .value();
  const Runtime runtime = Runtime::create({.threads = 1}).value();
  auto batch = PagedBatch::make({.pageSize = 16}).value();
  const std::vector<int> table{0, 1}, lengths{20}, drafts{3};
  batch.update({.table = {.entries = table, .rowStride = 2}, .lengths = lengths, .drafts = drafts}).value();
  Plan plan = batch.plan(attention).value(), other = batch.plan(attention).value();
  auto selection = Selection::make(attention).value();
  const std::vector<std::uint16_t> q(3 * 4 * 64, kOne), cache(2 * 16 * 2 * 64, kOne);
  std::vector<std::uint16_t> out(q.size());
  const Inputs inputs{.q = q.data(), .k = cache.data(), .v = cache.data(), .pageTable = table};
  const Outputs outputs{.out = out.data()};
  const std::array<std::uint32_t, 3> chain{1, 3, 7}, star{1, 2, 4};
  for (Plan *one : {&plan, &other})
    one->draft({.bits = chain.data(), .drafts = 3}).value();
  runtime.runSelecting(attention, plan, selection, inputs, outputs).value();
  runtime.runSparse(attention, plan, selection, inputs, outputs).value();
  runtime.runSparse(attention, other, selection, inputs, outputs).value();
  plan.draft({.bits = star.data(), .drafts = 3}).value();
  const auto stale = runtime.runSparse(attention, plan, selection, inputs, outputs);
  ASSERT_FALSE(stale);
  EXPECT_THAT(stale.error().message, HasSubstr("another mask of drafts has come"));
  runtime.runSelecting(attention, plan, selection, inputs, outputs).value();
  runtime.runSparse(attention, plan, selection, inputs, outputs).value();

  // Of a path whose drafts stand at one position nobody could say which of them a list means.
  const std::array<int, 3> depths{0, 1, 1};
  plan.draft({.bits = chain.data(), .drafts = 3, .depths = depths.data()}).value();
  runtime.run(attention, plan, inputs, outputs).value();
  const auto ambiguous = runtime.runSelecting(attention, plan, selection, inputs, outputs);
  ASSERT_FALSE(ambiguous);
  EXPECT_THAT(ambiguous.error().message, HasSubstr("query 2 sees several tokens at one position"));
}

TEST(SelectionTest, WhatTheSpecDoesNotSayIsAnError) {
  EXPECT_THAT(Selection::make(compiled("")).error().message, HasSubstr("`a` selects nothing"));
  const Attention several = compiled("select { budget = tune(64, 16); by = query; keep_first = 2; }");
  EXPECT_EQ(Selection::make(several).value().budget(), 64);
  EXPECT_EQ(Selection::make(several, 16).value().budget(), 16);
  EXPECT_THAT(Selection::make(several, 32).error().message,
              HasSubstr("a budget of 32 is none of `a`'s: 64, 16"));
  const auto info = several.selects();
  ASSERT_TRUE(info);
  EXPECT_THAT(info->budgets, ElementsAre(64, 16));
  EXPECT_EQ(info->by, SelectBy::Query);
  EXPECT_EQ(info->keepFirst, 2);
  EXPECT_FALSE(compiled("").selects());
}

TEST(SelectionTest, ListsOfAnotherShapeAreAnError) {
  Problem problem("select { budget = 2; }");
  const Plan plan = Plan::make(problem.attention, problem.tree).value();
  auto selection = Selection::make(compiled("select { budget = 2; by = query; }")).value();
  const auto ran =
      problem.runtime.runSelecting(problem.attention, plan, selection, problem.inputs(), problem.outputs());
  EXPECT_THAT(ran.error().message, HasSubstr("the selection has 1 list a query, `a` has 2"));
}

TEST(SelectionTest, PollutedTokensAreHandedOutAndCorrected) {
  auto sequences = SequenceTree::make({.pageSize = 4, .pages = 20}).value();
  const int prompt = sequences.addRoot(10).value();
  const int branch = sequences.fork(prompt).value();
  (void)sequences.append(branch, 3).value();
  ASSERT_TRUE(sequences.pollute(std::array{NodeTokens{branch, 1, 2}}));
  const auto polluted = sequences.polluted();
  ASSERT_EQ(polluted.size(), 1u);
  EXPECT_EQ(polluted[0].node, branch);
  EXPECT_EQ(polluted[0].first, 1);
  EXPECT_EQ(polluted[0].tokens, 2);
  EXPECT_FALSE(sequences.pollute(std::array{NodeTokens{branch, 2, 2}}));
  ASSERT_TRUE(sequences.correct(polluted));
  EXPECT_TRUE(sequences.polluted().empty());
}

} // namespace
} // namespace deft
