#include "runtime/reference/Selecting.h"

#include "runtime/exec/RandomInputs.h"
#include "runtime/reference/Check.h"
#include "runtime/reference/Oracle.h"
#include "runtime/tree/CachePlacement.h"
#include "tests/support/Forest.h"
#include "tests/support/VariantBuilder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

namespace deft::reference {
namespace {

constexpr double kHidden = -std::numeric_limits<double>::infinity();

spec::SelectSpec selecting(int budget, int keepFirst = 0, int keepLast = 0) {
  spec::SelectSpec select;
  select.budget.values = {budget};
  select.keepFirst = keepFirst;
  select.keepLast = keepLast;
  return select;
}

/// A forest in a cache for four query heads and two KV heads.
struct Case {
  explicit Case(std::uint64_t seed, spec::SelectBy by = spec::SelectBy::KvHead)
      : Case(seed, by, test::randomForest(seed, {10, 30, 8})) {}
  Case(std::uint64_t seed, spec::SelectBy by, tree::KvTree someTree)
      : build(4, 2, 16), tree(std::move(someTree)) {
    build.variant.withLse = true;
    build.variant.select = selecting(12, 2, 3);
    build.variant.select->by = by;
    const auto placement = tree::placeInCache(tree, {.order = tree::PlacementOrder::Scattered, .seed = seed});
    EXPECT_TRUE(placement.ok());
    inputs = exec::makeRandomInputs(build.variant, tree, *placement, {}, seed);
    for (int query = 0; query < static_cast<int>(tree.queries().size()); ++query)
      queries.push_back(query);
  }
  SelectionReport check(const exec::Selection &selection) const {
    return checkSelection(build.variant, tree, inputs, selection, queries, 2);
  }

  test::VariantBuilder build;
  tree::KvTree tree;
  exec::Inputs inputs;
  std::vector<int> queries;
};

/// Two branches, far longer than a list.
Case longPaths() { return {7, spec::SelectBy::KvHead, test::levelTree({1, 2}, {30, 10})}; }

TEST(SelectingTest, ASortByHand) {
  const std::vector<double> worth = {1, 7, kHidden, 7, 3, 9, 0};
  EXPECT_EQ(selectBySort(worth, selecting(2), 2), (std::vector<int>{1, 5}));
  EXPECT_EQ(selectBySort(worth, selecting(3), 3), (std::vector<int>{1, 3, 5}));
  EXPECT_EQ(selectBySort(worth, selecting(3, 1, 1), 3), (std::vector<int>{0, 5, 6}));
  EXPECT_EQ(selectBySort(worth, selecting(4, 3, 0), 4), (std::vector<int>{0, 1, 3, 5}));
  EXPECT_EQ(selectBySort(worth, selecting(99), 99), (std::vector<int>{0, 1, 3, 4, 5, 6}));
}

TEST(SelectingTest, ATokenIsWorthTheLargestScoreOfTheListsHeads) {
  const Case with(2), each(2, spec::SelectBy::QueryHead), all(2, spec::SelectBy::Query);
  ASSERT_FALSE(with.queries.empty());
  for (const int query : with.queries) {
    std::vector<std::vector<double>> heads;
    for (int head = 0; head < 4; ++head) {
      heads.push_back(evaluateScores(with.build.variant, with.tree, with.inputs, query, head));
      EXPECT_EQ(worthOf(each.build.variant, each.tree, each.inputs, query, head).values, heads.back());
    }
    const Worth second = worthOf(with.build.variant, with.tree, with.inputs, query, 1);
    const Worth only = worthOf(all.build.variant, all.tree, all.inputs, query, 0);
    for (std::size_t t = 0; t < second.values.size(); ++t) {
      EXPECT_EQ(second.values[t], std::max(heads[2][t], heads[3][t]));
      EXPECT_EQ(only.values[t], std::max({heads[0][t], heads[1][t], heads[2][t], heads[3][t]}));
    }
  }
}

TEST(SelectingTest, ItsOwnListsAreRight) {
  for (const auto by : {spec::SelectBy::KvHead, spec::SelectBy::QueryHead, spec::SelectBy::Query})
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      const Case with(seed, by);
      const auto report = with.check(select(with.build.variant, with.tree, with.inputs, 12));
      EXPECT_TRUE(report.passed()) << report.fault;
      EXPECT_EQ(report.recall(), 1);
      EXPECT_EQ(report.lists, static_cast<long long>(with.queries.size()) * with.build.variant.lists());
    }
}

TEST(SelectingTest, EveryKindOfWrongListIsNoticed) {
  const Case with = longPaths();
  exec::Selection right = select(with.build.variant, with.tree, with.inputs, 12);
  const int query = 1;
  const std::size_t list = right.listAt(query, 0), first = list * 12;
  const auto faultOf = [&](auto damage) {
    exec::Selection wrong = right;
    damage(wrong);
    return with.check(wrong).fault;
  };
  const auto expect = [&](const char *what, auto damage) {
    EXPECT_NE(faultOf(damage).find(what), std::string::npos) << what << ": " << faultOf(damage);
  };
  expect("it has 11 tokens, not 12", [&](exec::Selection &s) { --s.counts[list]; });
  expect("stands behind",
         [&](exec::Selection &s) { std::swap(s.positions[first + 3], s.positions[first + 4]); });
  expect("stands behind", [&](exec::Selection &s) { s.positions[first + 4] = s.positions[first + 3]; });
  expect("is not on the path", [&](exec::Selection &s) { s.positions[first + 11] = 100000; });
  expect("which is kept", [&](exec::Selection &s) { // position 1 by the first that is left out
    std::vector<std::int32_t> held(s.positions.begin() + static_cast<std::ptrdiff_t>(first),
                                   s.positions.begin() + static_cast<std::ptrdiff_t>(first) + 12);
    std::int32_t out = 2;
    while (std::find(held.begin(), held.end(), out) != held.end())
      ++out;
    *std::find(held.begin(), held.end(), 1) = out;
    std::sort(held.begin(), held.end());
    std::copy(held.begin(), held.end(), s.positions.begin() + static_cast<std::ptrdiff_t>(first));
  });
  // The least of those that were chosen by the best that was not.
  const Worth worth = worthOf(with.build.variant, with.tree, with.inputs, query, 0);
  EXPECT_TRUE(with.check(right).passed());
  expect("is worth", [&](exec::Selection &s) {
    const auto begin = s.positions.begin() + static_cast<std::ptrdiff_t>(first);
    std::vector<std::int32_t> held(begin, begin + 12);
    std::int32_t worstOut = -1;
    const auto tokens = static_cast<std::int32_t>(worth.values.size());
    for (std::int32_t t = 2; t < tokens - 3; ++t)
      if (std::find(held.begin(), held.end(), t) == held.end() &&
          (worstOut < 0 ||
           worth.values[static_cast<std::size_t>(t)] < worth.values[static_cast<std::size_t>(worstOut)]))
        worstOut = t;
    held[5] = worstOut; // of the middle, so no kept one
    std::sort(held.begin(), held.end());
    std::copy(held.begin(), held.end(), begin);
  });
}

TEST(SelectingTest, RoundingsMayDecideBetweenTokensThatAreWorthTheSame) {
  Case with = longPaths();
  std::fill(with.inputs.k.begin(), with.inputs.k.end(), std::uint16_t{0});
  const exec::Selection exact = select(with.build.variant, with.tree, with.inputs, 12);
  exec::Selection other = exact;
  const std::size_t last = other.listAt(1, 0) * 12 + 8; // the last of the ties, before what is kept
  ++other.positions[last];
  EXPECT_TRUE(with.check(other).passed()) << with.check(other).fault;
  EXPECT_LT(with.check(other).recall(), 1);
}

TEST(SelectingTest, SparseAttentionOverAllTokensIsFullAttention) {
  const Case with = longPaths();
  const exec::Selection all = select(with.build.variant, with.tree, with.inputs, 4096);
  const exec::Selection few = select(with.build.variant, with.tree, with.inputs, 12);
  for (const int query : with.queries) {
    const auto rows = [&](const exec::Selection *selection) {
      return evaluateGroup(with.build.variant, with.tree, with.inputs, query, 1, Precision::Exact, selection);
    };
    const auto full = rows(nullptr), whole = rows(&all), part = rows(&few);
    for (std::size_t i = 0; i < full.size(); ++i) {
      EXPECT_EQ(full[i].out, whole[i].out);
      EXPECT_EQ(full[i].lse, whole[i].lse);
      EXPECT_LE(part[i].lse, full[i].lse);
    }
  }
}

TEST(SelectingTest, SparseAttentionByHand) {
  const Case with = longPaths();
  const int query = with.queries.back();
  const exec::Selection few = select(with.build.variant, with.tree, with.inputs, 12);
  const std::vector<double> scores = evaluateScores(with.build.variant, with.tree, with.inputs, query, 3);
  double sum = 0;
  for (const std::int32_t position : few.of(query, 1))
    sum += std::exp(scores[static_cast<std::size_t>(position)]);
  const auto rows =
      evaluateGroup(with.build.variant, with.tree, with.inputs, query, 1, Precision::Exact, &few);
  if (few.of(query, 1).empty())
    EXPECT_EQ(rows[1].lse, kHidden);
  else
    EXPECT_NEAR(rows[1].lse, std::log(sum), 1e-9);
}

} // namespace
} // namespace deft::reference
