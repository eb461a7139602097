// Plans of masks with bounds, as a program sees them: specs are compiled, so this is of the full build.
#include <deft/deft.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace deft {
namespace {

using testing::Each;
using testing::HasSubstr;

constexpr std::uint16_t kOne = 0x3f80, kNaN = 0x7fff; // in bf16
constexpr int kPrompt = 1000, kBranch = 6, kPage = 16;

Attention compile(const std::string &items) {
  auto attention =
      compileSpec("import \"library.deft\";\nattention a { query_heads = 4; kv_heads = 2; head_dim = 64; "
                  "output = bf16 with lse; " +
                  items + " }");
  EXPECT_TRUE(attention) << attention.error().text();
  return std::move(*attention);
}

Attention windowOf(int tokens) {
  return compile("mask = tree && sliding_window(" + std::to_string(tokens) + ");");
}
Attention windowOfParam() { return compile("param w : i32 = 64; mask = tree && sliding_window(w);"); }

/// Two branches of a long prompt. All scores are 0 and all values 1, so that an lse tells how many tokens
/// were seen; what no query sees within a window has no page, and NaN where the first page would be.
struct Problem {
  Runtime runtime = Runtime::create({.threads = 2}).value();
  Tree tree;
  int branch = 0;
  std::vector<int> pageTable;
  std::vector<std::uint16_t> q, k, v, out;
  std::vector<float> lse;

  explicit Problem(int firstSeen = 0) {
    const int root = tree.addRoot(kPrompt, 0).value();
    for (const int location : {kPrompt, kPrompt + 200}) {
      branch = tree.addChild(root, kBranch, location).value();
      (void)tree.addQuery(branch).value();
    }
    const std::size_t pages = (kPrompt + 400) / kPage + 1, elements = kPage * 2 * 64;
    pageTable.resize(pages);
    std::iota(pageTable.begin(), pageTable.end(), 0);
    q.assign(2 * 4 * 64, 0);
    k.assign(pages * elements, 0);
    v.assign(pages * elements, kOne);
    free(firstSeen);
    out.assign(q.size(), 0);
    lse.assign(2 * 4, 0);
  }
  /// The pages in front of a token.
  void free(int token) {
    const int page = token / kPage;
    std::fill_n(pageTable.begin(), page, -1);
    std::fill_n(k.begin(), page * kPage * 2 * 64, kNaN);
    std::fill_n(v.begin(), page * kPage * 2 * 64, kNaN);
  }
  Result<void> run(const Attention &attention, const Plan &plan, const Params *params = nullptr) {
    return runtime.run(
        attention, plan,
        {.q = q.data(), .k = k.data(), .v = v.data(), .pageTable = pageTable, .params = params},
        {.out = out.data(), .lse = lse.data()});
  }
  void expectSeen(int tokens) const {
    EXPECT_THAT(out, Each(kOne));
    EXPECT_THAT(lse, Each(testing::FloatNear(std::log(static_cast<float>(tokens)), 1e-4F)));
  }
};

TEST(WindowTest, PagesThatNobodySeesMayBeGone) {
  constexpr int kWindow = 100;
  Problem problem(kPrompt + kBranch - kWindow);
  const Attention attention = windowOf(kWindow);
  Plan plan = Plan::make(attention, problem.tree).value();
  EXPECT_LE(plan.summary().tokensRead, kWindow + kBranch);
  auto ran = problem.run(attention, plan);
  ASSERT_TRUE(ran) << ran.error().text();
  problem.expectSeen(kWindow);
  // As branches grow, the window moves, and pages are freed behind it.
  for (int step = 1; step <= 60; ++step) {
    for (const int branch : {problem.branch - 1, problem.branch})
      ASSERT_TRUE(problem.tree.append(branch, 1));
    ASSERT_TRUE(plan.advance(problem.tree));
    problem.free(kPrompt + kBranch + step - kWindow);
    ran = problem.run(attention, plan);
    ASSERT_TRUE(ran) << "step " << step << ": " << ran.error().text();
    problem.expectSeen(kWindow);
  }
}

// Where a mask has a gap, not the reader with the least q_pos says where what is read begins.
TEST(WindowTest, ALeafThatNobodyReadsTakesNothingFromOthers) {
  Problem problem;
  problem.tree = Tree();
  const int root = problem.tree.addRoot(12, 0).value();
  const int first = problem.tree.addChild(root, 4, 16).value(),
            second = problem.tree.addChild(root, 15, 32).value(),
            third = problem.tree.addChild(root, 1, 64).value();
  for (const int node : {first, root, second})
    (void)problem.tree.addQuery(node).value();
  problem.q.assign(3 * 4 * 64, 0);
  problem.out.assign(problem.q.size(), 0);
  problem.lse.assign(3 * 4, 0);
  const Attention attention = compile("mask = kv_pos == q_pos - 15 || kv_pos > q_pos - 3;");
  Plan plan = Plan::make(attention, problem.tree).value();
  ASSERT_TRUE(problem.tree.append(third, 1));
  ASSERT_EQ(plan.advance(problem.tree).value(), Advanced::InPlace);
  const auto ran = problem.run(attention, plan);
  ASSERT_TRUE(ran) << ran.error().text();
  for (const auto &[query, tokens] : {std::pair(0, 4), {1, 3}, {2, 4}})
    EXPECT_THAT(std::span(problem.lse).subspan(static_cast<std::size_t>(4 * query), 4),
                Each(testing::FloatNear(std::log(static_cast<float>(tokens)), 1e-4F)))
        << "query " << query;
}

TEST(WindowTest, APlanHasTheParametersThatItWasMadeWith) {
  Problem problem;
  const Attention attention = windowOfParam();
  Params wide(attention);
  ASSERT_TRUE(wide.set("w", 128));
  const Plan byDefault = Plan::make(attention, problem.tree).value();
  const Plan byParams = Plan::make(attention, problem.tree, {.params = &wide}).value();
  ASSERT_TRUE(problem.run(attention, byDefault));
  problem.expectSeen(64);
  ASSERT_TRUE(problem.run(attention, byParams, &wide));
  problem.expectSeen(128);
  const auto stale = problem.run(attention, byDefault, &wide);
  ASSERT_FALSE(stale);
  EXPECT_THAT(stale.error().message, HasSubstr("with other values of its parameters"));
  EXPECT_FALSE(problem.run(attention, byParams));
}

TEST(WindowTest, AParameterWithoutAValueLeavesThePlanWhole) {
  Problem problem;
  const Attention attention = compile("param w : i32; mask = tree && sliding_window(w);");
  const Plan plan = Plan::make(attention, problem.tree).value();
  EXPECT_GE(plan.summary().tokensRead, kPrompt);
  Params params(attention);
  for (const int width : {10, 700}) {
    ASSERT_TRUE(params.set("w", width));
    ASSERT_TRUE(problem.run(attention, plan, &params));
    problem.expectSeen(width);
  }
}

/// Layers with windows and layers without have plans of their own; a whole plan serves both.
TEST(WindowTest, AMaskThatShowsMoreNeedsAnotherPlan) {
  Problem problem;
  const Attention window = windowOf(50), whole = compile("");
  const Plan ofWindow = Plan::make(window, problem.tree).value(),
             ofWhole = Plan::make(whole, problem.tree).value();
  EXPECT_FALSE(problem.run(whole, ofWindow));
  EXPECT_FALSE(problem.run(windowOf(51), ofWindow));
  ASSERT_TRUE(problem.run(windowOf(50), ofWindow));
  ASSERT_TRUE(problem.run(window, ofWhole));
  problem.expectSeen(50);
  ASSERT_TRUE(problem.run(whole, ofWhole));
  problem.expectSeen(kPrompt + kBranch);
}

/// What a plan within `tree` leaves out, no mask bound by `path` may miss; and the other way round.
TEST(WindowTest, AWiderBoundNeedsAPlanOfItsOwn) {
  Problem problem;
  problem.tree.addQuery(problem.branch, 2).value(); // 4 tokens of its node stand behind it
  for (auto *values : {&problem.q, &problem.out})
    values->resize(3 * 4 * 64);
  problem.lse.resize(3 * 4);
  const Attention narrow = compile(""), wide = compile("mask = path;"),
                  causal = compile("mask = path && kv_pos <= q_pos;");
  const Plan ofNarrow = Plan::make(narrow, problem.tree).value(),
             ofWide = Plan::make(wide, problem.tree).value(),
             ofCausal = Plan::make(causal, problem.tree).value();
  EXPECT_FALSE(problem.run(wide, ofNarrow));
  EXPECT_FALSE(problem.run(causal, ofNarrow));
  EXPECT_FALSE(problem.run(narrow, ofWide));
  ASSERT_TRUE(problem.run(wide, ofWide));
  problem.expectSeen(kPrompt + kBranch);
  ASSERT_TRUE(problem.run(causal, ofCausal));
  EXPECT_NEAR(problem.lse[8], std::log(kPrompt + 2), 1e-4);
  EXPECT_NEAR(problem.lse[4], std::log(kPrompt + kBranch), 1e-4);
}

TEST(WindowTest, ParametersOfAnotherAttentionAreAnError) {
  Problem problem;
  const Attention attention = windowOfParam();
  const Params others(windowOfParam());
  const auto made = Plan::make(attention, problem.tree, {.params = &others});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().message, "PlanOptions::params are those of another attention");
}

TEST(WindowTest, AMaskThatHidesAllGivesZeroAndReadsNothing) {
  Problem problem(kPrompt + 400);
  const Attention attention = compile("mask = tree && kv_pos > q_pos;");
  const Plan plan = Plan::make(attention, problem.tree).value();
  EXPECT_EQ(plan.summary().tokensRead, 0);
  problem.out.assign(problem.out.size(), kOne);
  ASSERT_TRUE(problem.run(attention, plan));
  EXPECT_THAT(problem.out, Each(0));
  EXPECT_THAT(problem.lse, Each(-std::numeric_limits<float>::infinity()));
}

} // namespace
} // namespace deft
