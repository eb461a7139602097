#include "runtime/plan/Balance.h"
#include "tests/unit/runtime/plan/PlanTesting.h"

#include <numeric>

namespace deft::plan {
namespace {

TEST(BalanceTest, EveryUnitIsOnOneBlockHeaviestFirst) {
  const Plan plan = mustPlan(test::randomForest(4, {300, 300, 300}), {4, 2}, makeConfig(64, {64, 16}));
  const std::vector<double> costs = itemCosts(plan);
  const Balance balanced = balance(plan, costs, 2, 7);
  std::vector<int> sorted = balanced.units;
  std::sort(sorted.begin(), sorted.end());
  ASSERT_EQ(sorted.size(), plan.items.size() * 2);
  for (std::size_t i = 0; i < sorted.size(); ++i)
    EXPECT_EQ(sorted[i], static_cast<int>(i));
  for (int block = 0; block < 7; ++block) {
    double load = 0, last = 1e30;
    for (int u = balanced.unitBegin[block]; u < balanced.unitBegin[block + 1]; ++u) {
      const double cost = costs[balanced.units[u] / 2];
      EXPECT_LE(cost, last);
      last = cost;
      load += cost;
    }
    EXPECT_DOUBLE_EQ(load, balanced.load[block]);
    EXPECT_LE(load, balanced.mostLoad);
  }
}

/// The bound of heaviest-first scheduling: the mean, and one item on top.
TEST(BalanceTest, NoBlockHasMoreThanTheMeanAndAnItem) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Plan plan = mustPlan(test::randomForest(seed, {60, 400, 80}), {4, 8}, makeConfig(0, {64, 16}), 16);
    const std::vector<double> costs = itemCosts(plan);
    const Balance balanced = balance(plan, costs, 8, 16);
    const double heaviest = costs.empty() ? 0 : *std::max_element(costs.begin(), costs.end());
    EXPECT_LE(balanced.mostLoad, balanced.meanLoad + heaviest);
    EXPECT_NEAR(balanced.meanLoad * 16, std::accumulate(costs.begin(), costs.end(), 0.0) * 8, 1e-6);
  }
}

/// What the planner's own chunks are for.
TEST(BalanceTest, OpenChunksFillTheMachine) {
  for (const tree::KvTree &tree :
       {test::levelTree({1, 20}, {4000, 200}), test::levelTree({1}, {32768}), test::levelTree({256}, {1024}),
        test::levelTree({1, 4, 64}, {8000, 900, 77})})
    for (const spec::Partition partition :
         {spec::Partition::Union, spec::Partition::Query, spec::Partition::NodeChunk}) {
      const Plan plan = mustPlan(tree, {4, 8}, makeConfig(0, {64, 16}, partition));
      EXPECT_LT(balance(plan, itemCosts(plan), 8, 132).maxOverMean(), 1.5);
    }
}

/// A partial is written and read again: worth it for one query's 32,768 tokens, not for 256 queries' each.
TEST(BalanceTest, PartialsHaveAPrice) {
  const VariantFacts facts{4, 8};
  const int ofOne = mustPlan(test::levelTree({1}, {32768}), facts, makeConfig(0)).chunkTokens;
  EXPECT_LT(ofOne, 32768 / 8);
  const Plan many = mustPlan(test::levelTree({1, 256}, {32768, 1}), facts, makeConfig(0, {64}));
  EXPECT_GT(many.chunkTokens, ofOne);
}

/// One tile for each of 8 heads on 48 blocks: six parts each, equal but for chunks being rounded up.
TEST(BalanceTest, FewTilesAreCutIntoEqualParts) {
  const Plan plan = mustPlan(test::levelTree({1}, {10000}), {8, 8}, makeConfig(0), 48);
  ASSERT_EQ(plan.items.size(), 6u);
  for (const abi::Item &item : plan.items)
    EXPECT_NEAR(item.tokens, 10000.0 / 6, 6 * 16);
}

TEST(BalanceTest, NothingIsBalanced) { EXPECT_EQ(balance(Plan(), {}, 8, 4).maxOverMean(), 1); }

} // namespace
} // namespace deft::plan
