// Sparse runs on processors that are handed their lists (rule K7); specs are compiled, so this is of the full
// build.
#include <deft/deft.hpp>

#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <random>
#include <vector>

namespace deft {
namespace {

constexpr int kHeads = 3, kDim = 64, kKey = 80, kPage = 16, kPages = 5, kQueries = 4, kSlots = kPages * kPage;

float fromBf16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

class Fixture {
protected:
  Fixture() {
    std::normal_distribution<float> normal;
    const auto fill = [&](std::vector<std::uint16_t> &values) {
      for (std::uint16_t &value : values)
        value = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(normal(random)) >> 16);
    };
    fill(q);
    fill(k);
    const int root = tree.addRoot(1, 0).value();
    for (int i = 0; i < kQueries; ++i)
      (void)tree.addQuery(root).value();
  }

  Inputs inputs(const std::vector<int> &lists) const {
    return {.q = q.data(),
            .k = k.data(),
            .cachePages = kPages,
            .lists = lists.data(),
            .budget = static_cast<int>(lists.size()) / kQueries};
  }
  Result<void> run(const Inputs &given) {
    return runtime.runSparse(attention, Plan::make(attention, tree).value(), given,
                             {.out = out.data(), .lse = lse.data()});
  }
  std::string errorOf(const Inputs &given) {
    const auto ran = run(given);
    return ran ? "" : ran.error().message;
  }

  std::mt19937 random{9};
  Attention attention =
      compileSpec("attention a { query_heads = 3; kv_cache = latent(dim = 64, rope = 16, page_size = 16); "
                  "scale = 0.125; output = bf16 with lse; select { budget = tune(24, 700); by = caller; } }")
          .value();
  Runtime runtime = Runtime::create({.threads = 2}).value();
  Tree tree;
  std::vector<std::uint16_t> q = std::vector<std::uint16_t>(kQueries * kHeads * kKey),
                             k = std::vector<std::uint16_t>(kSlots * kKey),
                             out = std::vector<std::uint16_t>(kQueries * kHeads * kDim);
  std::vector<float> lse = std::vector<float>(kQueries * kHeads);
};

class GivenListsTest : public Fixture, public testing::TestWithParam<int> {};
class GivenListsErrorsTest : public Fixture, public testing::Test {};

TEST_P(GivenListsTest, TokensCountAsOftenAsTheyAreListed) {
  const int budget = GetParam();
  std::vector<int> lists(static_cast<std::size_t>(kQueries * budget), -1);
  for (int i = 0; i < (kQueries - 1) * budget; ++i) // the last query has none
    if (random() % 3 != 0)
      lists[static_cast<std::size_t>(i)] = static_cast<int>(random() % kSlots);
  ASSERT_EQ(errorOf(inputs(lists)), "");
  for (int row = 0; row < kQueries * kHeads; ++row) {
    std::vector<double> sum(kDim);
    double weights = 0;
    for (int i = 0; i < budget; ++i) {
      const int slot = lists[static_cast<std::size_t>(row / kHeads * budget + i)];
      if (slot < 0)
        continue;
      double score = 0;
      for (int d = 0; d < kKey; ++d)
        score += static_cast<double>(fromBf16(q[static_cast<std::size_t>(row * kKey + d)])) *
                 fromBf16(k[static_cast<std::size_t>(slot * kKey + d)]);
      const double weight = std::exp(0.125 * score);
      weights += weight;
      for (int d = 0; d < kDim; ++d)
        sum[static_cast<std::size_t>(d)] += weight * fromBf16(k[static_cast<std::size_t>(slot * kKey + d)]);
    }
    const float got = lse[static_cast<std::size_t>(row)];
    if (weights == 0)
      EXPECT_EQ(got, -std::numeric_limits<float>::infinity());
    else
      EXPECT_NEAR(got, std::log(weights), 1e-3);
    for (int d = 0; d < kDim; ++d) {
      const double exact = weights == 0 ? 0 : sum[static_cast<std::size_t>(d)] / weights;
      ASSERT_NEAR(fromBf16(out[static_cast<std::size_t>(row * kDim + d)]), exact,
                  0.01 + 0.01 * std::abs(exact))
          << "row " << row;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Budgets, GivenListsTest, testing::Values(24, 700));

TEST_F(GivenListsErrorsTest, WhatDoesNotFitIsNamed) {
  std::vector<int> lists(kQueries * 24, 3);
  EXPECT_EQ(attention.selects()->by, SelectBy::Caller);
  lists[24 + 5] = kSlots;
  EXPECT_EQ(errorOf(inputs(lists)), "lists has 80 for query 1, and the cache has 80 slots");
  lists[24 + 5] = -2;
  EXPECT_EQ(errorOf(inputs(lists)), "lists has -2 for query 1, and the cache has 80 slots");
  Inputs given = inputs(lists);
  given.lists = nullptr;
  EXPECT_EQ(errorOf(given), "pageTable is null, and the cache of `a` is paged");
  const std::vector<int> table(kPages);
  given.pageTable = table;
  EXPECT_EQ(errorOf(given), "lists is null, and `a` reads lists of its caller");
  given = inputs(lists);
  given.budget = 25;
  EXPECT_EQ(errorOf(given), "lists is [4, 25], and a budget of 25 is none of `a`'s: 24, 700");
  given = inputs(lists);
  given.settings.check_finite = 1;
  EXPECT_EQ(errorOf(given),
            "RunSettings::check_finite is not 0, and a run over a caller's lists looks at no values");
  given = inputs(lists);
  given.pageTable = table;
  const Plan plan = Plan::make(attention, tree).value();
  const Outputs outputs{.out = out.data(), .lse = lse.data()};
  EXPECT_EQ(runtime.run(attention, plan, given, outputs).error().message,
            "lists is given, and only sparse runs read lists");
  EXPECT_EQ(Selection::make(attention).error().message, "`a` selects nothing: its lists are by `caller`");
  const Attention selecting =
      compileSpec("attention b { query_heads = 3; kv_cache = latent(dim = 64, rope = 16, page_size = 16); "
                  "scale = 0.125; output = bf16 with lse; select { budget = 24; } }")
          .value();
  EXPECT_EQ(runtime.run(selecting, Plan::make(selecting, tree).value(), given, outputs).error().message,
            "lists is given, and `b` takes no lists from a caller");
}

} // namespace
} // namespace deft
