// Arrays over tokens and queries as a program gives them: specs are compiled, so this is of the full build.
#include <deft/deft.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

namespace deft {
namespace {

using testing::HasSubstr;

constexpr std::uint16_t kOne = 0x3f80; // in bf16
constexpr int kPage = 16, kPages = 8;

Attention compile(const std::string &items) {
  auto attention =
      compileSpec("import \"library.deft\";\nattention a { query_heads = 4; kv_heads = 2; head_dim = 64; "
                  "output = bf16 with lse; param doc : i32[tokens]; param own : i32[queries]; " +
                  items + " }");
  EXPECT_TRUE(attention) << attention.error().text();
  return std::move(*attention);
}

/// A prompt of 40 tokens and two branches of 6, in pages that lie apart. All scores are 0, so that an lse
/// tells how many tokens were seen.
struct Problem {
  Runtime runtime = Runtime::create({.threads = 2}).value();
  Tree tree;
  std::vector<int> pageTable = {3, 1, 6, 2};
  std::vector<std::uint16_t> q, k, v, out;
  std::vector<float> lse;
  std::vector<std::int32_t> doc = std::vector<std::int32_t>(kPages * kPage, -7), own = {4, 5};

  Problem() {
    const int root = tree.addRoot(40, 0).value();
    for (const int location : {40, 50})
      (void)tree.addQuery(tree.addChild(root, 6, location).value()).value();
    q.assign(2 * 4 * 64, 0);
    k.assign(kPages * kPage * 2 * 64, 0);
    v.assign(k.size(), kOne);
    out.assign(q.size(), 0);
    lse.assign(2 * 4, 0);
    // Of the prompt 10 tokens are of document 4 and the rest of 5; a branch is its query's.
    for (int token = 0; token < 40; ++token)
      at(token) = token < 10 ? 4 : 5;
    for (int token = 0; token < 6; ++token) {
      at(40 + token) = 4;
      at(50 + token) = 5;
    }
  }
  std::int32_t &at(int location) {
    return doc[static_cast<std::size_t>(pageTable[static_cast<std::size_t>(location / kPage)] * kPage +
                                        location % kPage)];
  }
  Result<void> run(const Attention &attention, std::optional<std::int64_t> cachePages = {}) {
    Params params(attention);
    EXPECT_TRUE(params.set("doc", std::span<const std::int32_t>(doc)));
    EXPECT_TRUE(params.set("own", std::span<const std::int32_t>(own)));
    const auto plan = Plan::make(attention, tree, {.params = &params});
    EXPECT_TRUE(plan) << plan.error().text();
    Inputs inputs{.q = q.data(), .k = k.data(), .v = v.data(), .pageTable = pageTable, .params = &params};
    inputs.cachePages = cachePages;
    return runtime.run(attention, *plan, inputs, {.out = out.data(), .lse = lse.data()});
  }
  void expectSeen(int first, int second) const {
    for (std::size_t head = 0; head < 4; ++head) {
      EXPECT_NEAR(lse[head], std::log(static_cast<float>(first)), 1e-4F);
      EXPECT_NEAR(lse[4 + head], std::log(static_cast<float>(second)), 1e-4F);
    }
  }
};

TEST(SizedParamChecksTest, QueriesSeeTheTokensOfTheirDocument) {
  Problem problem;
  const Attention attention = compile("mask = same_document(doc, own);");
  EXPECT_EQ(attention.params()[0].length, 0);
  EXPECT_TRUE(attention.params()[0].isOfTokens && attention.params()[1].isOfQueries);
  const auto ran = problem.run(attention, kPages);
  ASSERT_TRUE(ran) << ran.error().text();
  problem.expectSeen(10 + 6, 30 + 6);
  problem.at(3) = 5; // the arrays are what they are when a run begins
  problem.own = {5, 4};
  ASSERT_TRUE(problem.run(attention));
  problem.expectSeen(31, 9);
}

TEST(SizedParamChecksTest, ScoresReadThem) {
  Problem problem;
  for (std::int32_t &value : problem.doc)
    value = 1;
  ASSERT_TRUE(problem.run(compile("score = s + log(2) * doc[token] * own[query];")));
  EXPECT_NEAR(problem.lse[0], std::log(46.0F) + 4 * std::log(2.0F), 1e-4F);
  EXPECT_NEAR(problem.lse[4], std::log(46.0F) + 5 * std::log(2.0F), 1e-4F);
}

TEST(SizedParamChecksTest, PagesThatAWindowHidesMayBeGone) {
  Problem problem;
  problem.pageTable[0] = -1;
  ASSERT_TRUE(problem.run(compile("mask = sliding_window(20) && same_document(doc, own);")));
  problem.expectSeen(6, 14 + 6);
}

TEST(SizedParamChecksTest, TooShortArraysAreErrorsWithBothNumbers) {
  Problem problem;
  const Attention attention = compile("mask = same_document(doc, own);");
  problem.doc.resize(6 * kPage + 7); // the first branch ends in slot 13 of page 6
  const auto tokens = problem.run(attention);
  ASSERT_FALSE(tokens);
  EXPECT_EQ(tokens.error().message,
            "parameter `doc` (i32[tokens]) has 103 values, the run reads the first 110 slots");
  EXPECT_THAT(tokens.error().hint, HasSubstr("[page][slot in the page]"));
  problem.doc.resize(7 * kPage);
  EXPECT_TRUE(problem.run(attention));
  problem.own.resize(1);
  const auto queries = problem.run(attention);
  ASSERT_FALSE(queries);
  EXPECT_EQ(queries.error().message, "parameter `own` (i32[queries]) has 1 values, the plan has 2 queries");
}

TEST(SizedParamChecksTest, OneNumberIsNoArray) {
  const Attention attention = compile("mask = same_document(doc, own);");
  Params params(attention);
  const auto set = params.set("doc", 3.0);
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().message, "parameter `doc` has a value for each token or query of a run");
}

} // namespace
} // namespace deft
