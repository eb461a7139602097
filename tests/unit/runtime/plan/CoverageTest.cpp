#include "runtime/plan/Coverage.h"

#include "tests/unit/runtime/plan/PlanTesting.h"

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
