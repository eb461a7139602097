#include <deft/deft.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>
#include <vector>

namespace deft {
namespace {

using testing::Each;
using testing::HasSubstr;

constexpr std::uint16_t kOne = 0x3f80; // in bf16

/// Two branches of a prompt; every value is 1, so every output is 1, whatever the scores.
struct Problem {
  Attention attention = loadPackage(DEFT_TEST_PACKAGE).value();
  Runtime runtime = Runtime::create({.threads = 2}).value();
  Tree tree;
  std::vector<int> pageTable = {3, 1, 0, 2};
  std::vector<std::uint16_t> q, k, v, out;
  std::vector<float> lse;

  Problem() {
    const int root = tree.addRoot(40, 0).value();
    for (const int location : {40, 50})
      (void)tree.addQuery(tree.addChild(root, 6, location).value()).value();
    q.assign(2 * 4 * 64, 0);
    k.assign(4 * 16 * 2 * 64, 0);
    v.assign(k.size(), kOne);
    out.assign(q.size(), 0);
    lse.assign(2 * 4, 0);
  }

  Inputs inputs() const { return {.q = q.data(), .k = k.data(), .v = v.data(), .pageTable = pageTable}; }
  Outputs outputs() { return {.out = out.data(), .lse = lse.data()}; }
  Plan plan() const { return Plan::make(attention, tree).value(); }
};

TEST(RuntimeTest, WritesEveryOutput) {
  Problem problem;
  Inputs inputs = problem.inputs();
  inputs.cachePages = 4;
  const auto ran = problem.runtime.run(problem.attention, problem.plan(), inputs, problem.outputs());
  ASSERT_TRUE(ran) << ran.error().text();
  EXPECT_THAT(problem.out, Each(kOne));
  EXPECT_THAT(problem.lse, Each(testing::FloatNear(std::log(46.0f), 1e-4f))); // all scores are 0
}

TEST(RuntimeTest, LseMayBeLeftOut) {
  Problem problem;
  EXPECT_TRUE(
      problem.runtime.run(problem.attention, problem.plan(), problem.inputs(), {.out = problem.out.data()}));
  EXPECT_THAT(problem.out, Each(kOne));
}

TEST(RuntimeTest, StridesOfTheHostAreFollowed) {
  // Two layers side by side, token by token: this layer is the second.
  Problem problem;
  std::vector<std::uint16_t> both(2 * problem.v.size(), 0x4000);
  for (std::size_t token = 0; token < 64; ++token)
    std::fill_n(both.begin() + static_cast<std::ptrdiff_t>((2 * token + 1) * 128), 128, kOne);
  Inputs inputs = problem.inputs();
  inputs.v = both.data() + 128;
  inputs.k = both.data() + 128;
  inputs.strides = CacheStrides{.page = 16 * 256, .token = 256, .head = 64};
  EXPECT_TRUE(problem.runtime.run(problem.attention, problem.plan(), inputs, problem.outputs()));
  EXPECT_THAT(problem.out, Each(kOne));
}

TEST(RuntimeTest, KeysAndValuesMayLieApart) {
  // K as the spec says; of V the tokens of a head together in a page, with room behind each.
  Problem problem;
  constexpr std::size_t kRow = 80;
  std::vector<std::uint16_t> apart(problem.v.size() / 64 * kRow, 0x4000);
  for (std::size_t row = 0; row < problem.v.size() / 64; ++row)
    std::fill_n(apart.begin() + static_cast<std::ptrdiff_t>(row * kRow), 64, kOne);
  Inputs inputs = problem.inputs();
  inputs.v = apart.data();
  inputs.vStrides = CacheStrides{.page = 2 * 16 * kRow, .token = kRow, .head = 16 * kRow};
  EXPECT_TRUE(problem.runtime.run(problem.attention, problem.plan(), inputs, problem.outputs()));
  EXPECT_THAT(problem.out, Each(kOne));
}

TEST(RuntimeTest, RowsOfQueriesAndOutputsMayBeApart) {
  Problem problem;
  const Plan plan = problem.plan();
  constexpr std::uint16_t kUnwritten = 0x4000;
  std::vector<std::uint16_t> q(2 * 512, 0x7fc0), out(2 * 300, kUnwritten); // 256 of a query
  for (std::size_t query = 0; query < 2; ++query)
    std::fill_n(q.begin() + static_cast<std::ptrdiff_t>(query * 512), 256, kOne);
  Inputs inputs = problem.inputs();
  inputs.q = q.data();
  inputs.qStride = 512;
  ASSERT_TRUE(problem.runtime.run(problem.attention, plan, inputs, {.out = out.data(), .outStride = 300}));
  for (std::size_t i = 0; i < out.size(); ++i)
    EXPECT_EQ(out[i], i % 300 < 256 ? kOne : kUnwritten) << i;
}

TEST(RuntimeTest, AQueryThatSeesNothingGivesZero) {
  Problem problem;
  problem.tree.clearQueries();
  (void)problem.tree.addQuery(0, 0).value();
  (void)problem.tree.addQuery(1).value();
  EXPECT_TRUE(problem.runtime.run(problem.attention, problem.plan(), problem.inputs(), problem.outputs()));
  EXPECT_THAT(std::span(problem.out).first(4 * 64), Each(0));
  EXPECT_THAT(std::span(problem.out).last(4 * 64), Each(kOne));
  EXPECT_THAT(std::span(problem.lse).first(4), Each(-std::numeric_limits<float>::infinity()));
}

/// Rule N5: nothing else tells of it.
TEST(RuntimeTest, ANaNInQMakesARowLookLikeOneThatSeesNothingAndIsNamedWhereAskedFor) {
  Problem problem;
  const Plan plan = problem.plan();
  const auto run = [&](bool checks) {
    Inputs inputs = problem.inputs();
    inputs.settings.check_finite = checks;
    const auto ran = problem.runtime.run(problem.attention, plan, inputs, problem.outputs());
    return ran ? "" : ran.error().message;
  };
  EXPECT_EQ(run(true), "");
  problem.q[(1 * 4 + 2) * 64 + 5] = 0x7fc0;
  EXPECT_EQ(run(false), "");
  EXPECT_THAT(std::span(problem.out).subspan((1 * 4 + 2) * 64, 64), Each(0));
  EXPECT_EQ(problem.lse[1 * 4 + 2], -std::numeric_limits<float>::infinity());
  EXPECT_EQ(run(true), "query 1, head 2: q is NaN at element 5");
  // Token 3 of the prompt, in page 3: heads 0 and 1 of both queries.
  problem.k[(3 * 16 + 3) * 128 + 5] = 0x7f80;
  problem.out.assign(problem.out.size(), 7);
  EXPECT_EQ(run(true),
            "query 0, head 0: K is inf at element 5 of the token at kv_pos 3 of its path, location 3");
  EXPECT_THAT(std::span(problem.out).last(64), Each(kOne)) << "all is written";
}

TEST(RuntimeTest, ErrorsAreFoundBeforeAnythingIsWritten) {
  Problem problem;
  const auto error = [&](const Plan &plan, const Inputs &inputs, const Outputs &outputs) {
    const auto ran = problem.runtime.run(problem.attention, plan, inputs, outputs);
    return ran ? "none" : ran.error().message;
  };
  const Plan plan = problem.plan();
  Inputs inputs = problem.inputs();
  inputs.q = nullptr;
  EXPECT_THAT(error(plan, inputs, problem.outputs()), HasSubstr("q is null"));
  inputs = problem.inputs();
  inputs.v = nullptr;
  EXPECT_THAT(error(plan, inputs, problem.outputs()), HasSubstr("v is null"));
  EXPECT_THAT(error(plan, problem.inputs(), {}), HasSubstr("out is null"));
  inputs = problem.inputs();
  inputs.pageTable = inputs.pageTable.first(3);
  EXPECT_THAT(error(plan, inputs, problem.outputs()), HasSubstr("has 3 pages, the tree needs the first 4"));
  const std::vector<int> hole = {3, -1, 0, 2};
  inputs.pageTable = hole;
  EXPECT_THAT(error(plan, inputs, problem.outputs()), HasSubstr("its entry 1 is -1"));
  inputs = problem.inputs();
  inputs.cachePages = 3;
  EXPECT_EQ(error(plan, inputs, problem.outputs()),
            "entry 0 of the page table is 3, and the cache has 3 pages");
  inputs.cachePages = -1;
  EXPECT_EQ(error(plan, inputs, problem.outputs()),
            "k is [-2, 16, 2, 64], it must be [pages, page_size, kv_heads, head_dim] = [any, 16, 2, 64]");
  (void)problem.tree.append(1, 1);
  EXPECT_THAT(error(plan, problem.inputs(), problem.outputs()), HasSubstr("stale"));
  EXPECT_THAT(problem.out, Each(0));
}

TEST(RuntimeTest, AStepWithoutQueriesDoesNothing) {
  Problem problem;
  problem.tree.clearQueries();
  EXPECT_TRUE(problem.runtime.run(problem.attention, problem.plan(), {}, {}));
}

TEST(RuntimeTest, OneRuntimeServesSeveralThreads) {
  Problem problems[2];
  const Plan plan = problems[0].plan();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      std::vector<std::uint16_t> out(problems[0].out.size());
      for (int i = 0; i < 50; ++i) {
        std::fill(out.begin(), out.end(), 0);
        EXPECT_TRUE(
            problems[0].runtime.run(problems[0].attention, plan, problems[0].inputs(), {.out = out.data()}));
        EXPECT_THAT(out, Each(kOne));
      }
    });
  for (int i = 0; i < 50; ++i) // and another goes on beside it
    EXPECT_TRUE(problems[1].runtime.run(problems[1].attention, problems[1].plan(), problems[1].inputs(),
                                        problems[1].outputs()));
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_THAT(problems[1].out, Each(kOne));
}

TEST(RuntimeTest, ThreadsAreCounted) {
  EXPECT_EQ(Runtime::create({.threads = 3})->threads(), 3);
  EXPECT_GE(Runtime::create()->threads(), 1);
  EXPECT_FALSE(Runtime::create({.threads = -1}));
}

} // namespace
} // namespace deft
