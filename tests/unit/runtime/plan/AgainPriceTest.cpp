#include "runtime/plan/AgainPrice.h"

#include "tests/unit/runtime/plan/PlanTesting.h"

namespace deft::plan {
namespace {

/// 32 query heads, 8 KV heads, head dim 128, f16: 4 KiB a token.
const VariantFacts kFacts{4, 8};

double againOf(const tree::KvTree &tree, config::Family family = config::Family::Sm90,
               double lastLevelMB = 50) {
  config::Config config = makeConfig(0, {128}); // tiles of 32 queries
  config.phases.front().family = family;
  config.cost.lastLevelMB = lastLevelMB;
  Planner planner;
  return ofTree(config.cost, planner.read(tree, kFacts), kFacts, config).againGBs;
}

TEST(AgainPriceTest, WhatTheCacheHoldsIsReadAgainFromThere) {
  const config::CostCoefficients prices;
  EXPECT_EQ(againOf(test::levelTree({1, 100}, {12000, 3000})), prices.againGBs) << "49 MB, others read once";
  EXPECT_EQ(againOf(test::levelTree({1, 32}, {50000, 10})), prices.againGBs) << "one tile reads all of it";
}

TEST(AgainPriceTest, TheRestComesFromMemory) {
  const config::CostCoefficients prices;
  const double bytes = 50000.0 * 4096, held = 50e6 / bytes;
  EXPECT_NEAR(1 / againOf(test::levelTree({1, 33}, {50000, 10})),
              held / prices.againGBs + (1 - held) / prices.cacheGBs, 1e-12);
  EXPECT_GT(againOf(test::levelTree({1, 33}, {5000000, 10})), prices.cacheGBs);
  EXPECT_EQ(againOf(test::levelTree({1, 33}, {50000, 10}), config::Family::Cpu), prices.againGBs);
}

TEST(AgainPriceTest, TheSizeOfTheCacheIsAPriceOfTheDevice) {
  const config::CostCoefficients prices;
  const tree::KvTree tree = test::levelTree({1, 33}, {50000, 10}); // 205 MB
  EXPECT_EQ(againOf(tree, config::Family::Sm90, 205), prices.againGBs);
  EXPECT_LT(againOf(tree, config::Family::Sm90, 40), againOf(tree));
  EXPECT_NEAR(againOf(tree, config::Family::Sm90, 0), prices.cacheGBs, 1e-9);
}

/// An agents' tree in small: many queries below a long prompt, and much that few of them share. With what
/// reading again costs there, wide tiles take fewer tokens again than narrow ones would.
TEST(AgainPriceTest, LargeTreesAreReadLessOften) {
  const tree::KvTree tree = placed(test::levelTree({1, 16, 256}, {20000, 4000, 400}));
  config::Config config = makeConfig(0, {128}, spec::Partition::Union);
  config.phases.front() = {"tiles", -1, config::Family::Sm90, 128, 64, 4, 12};
  const Plan plan = mustVerify(tree, kFacts, config);
  config.cost.cacheGBs = config.cost.againGBs; // as if memory were as fast as the cache
  const Plan other = mustPlan(tree, kFacts, config);
  EXPECT_LT(summarize(plan, kFacts).itemTokens, summarize(other, kFacts).itemTokens);
}

} // namespace
} // namespace deft::plan
