#include "runtime/plan/Coverage.h"

#include "compiler/config/CostCoefficients.h"
#include "compiler/config/DevicePrices.h"
#include "tests/unit/runtime/plan/PlanTesting.h"

#include <nlohmann/json.hpp>

#include <limits>
#include <string>

namespace deft::plan {
namespace {

/// A plan and the view that it was made of.
struct Planned {
  explicit Planned(const tree::KvTree &tree) : plan(mustPlan(tree, {4, 1}, makeConfig(64), 4)) {
    view.build(tree);
  }
  Plan plan;
  TreeView view;
};

TEST(CoverageTest, PlansOfForestsCoverTheirTrees) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const Planned made(test::randomForest(seed));
    EXPECT_TRUE(coversAll(made.plan, made.view)) << "seed " << seed;
    const Planned causal(test::causalForest(seed));
    EXPECT_TRUE(coversAll(causal.plan, causal.view)) << "seed " << seed;
  }
}

TEST(CoverageTest, ACausalStretchCountsItsPairs) {
  tree::KvTree tree;
  const int node = tree.addNode(-1, 20).value();
  for (int seen = 1; seen <= 20; ++seen)
    (void)tree.addQuery(node, seen).value();
  const Planned made(tree);
  ASSERT_TRUE(coversAll(made.plan, made.view));
  for (std::size_t r = 0; r < made.plan.runs.size(); ++r) {
    Plan shorter = made.plan;
    --shorter.runs.toChange()[r].tokens;
    EXPECT_FALSE(coversAll(shorter, made.view)) << "run " << r;
  }
}

TEST(CoverageTest, OneTokenOfOneReaderIsMissed) {
  const Planned made(smallTree());
  ASSERT_TRUE(coversAll(made.plan, made.view));
  for (std::size_t r = 0; r < made.plan.runs.size(); ++r) {
    Plan shorter = made.plan;
    --shorter.runs.toChange()[r].tokens;
    EXPECT_FALSE(coversAll(shorter, made.view)) << "run " << r;
    Plan fewerReaders = made.plan;
    --fewerReaders.runs.toChange()[r].queryEnd;
    EXPECT_FALSE(coversAll(fewerReaders, made.view)) << "run " << r;
  }
  EXPECT_FALSE(coversAll(Plan(), made.view));
}

/// By any price that a config may have, plans are whole.
TEST(CoverageTest, PricesAtTheEndsOfTheirRangesStillGivePlans) {
  int accepted = 0, refused = 0;
  nlohmann::json prices = config::toJson(config::processorPrices(2));
  for (const char *key : {"light_step", "light_item", "turn_step", "slot_us", "run_us", "merged_share"})
    prices[key] = 0; // left out where they say nothing
  for (const auto &[key, before] : prices.items())
    for (const double price : {0.0, 1e-320, 1e-3, 1e3, 1e6, 1e9, 1.7e308}) {
      SCOPED_TRACE(key + " = " + std::to_string(price));
      const auto cost = config::costFromJson({{key, price}});
      refused += !cost;
      if (!cost)
        continue;
      ++accepted;
      for (const spec::Partition partition :
           {spec::Partition::Auto, spec::Partition::Greedy, spec::Partition::Union}) {
        config::Config config = makeConfig(0, {64, 16}, partition);
        config.cost = *cost;
        mustVerify(test::levelTree({1, 3, 9}, {300, 40, 7}), {4, 2}, config, 8);
      }
    }
  EXPECT_GT(accepted, 40);
  EXPECT_GT(refused, 20);
}

/// What a price of infinity gave: no plan was cheaper than another, so none was made.
TEST(CoverageDeathTest, AnEmptyPlanCannotLeaveThePlanner) {
#ifdef NDEBUG
  GTEST_SKIP() << "a build without assertions";
#else
  config::Config config = makeConfig(0, {16}, spec::Partition::Union);
  config.cost.itemUs = std::numeric_limits<double>::infinity();
  EXPECT_DEATH((void)makePlan(smallTree(), {4, 1}, config, 4), "leaves out a token");
#endif
}

} // namespace
} // namespace deft::plan
