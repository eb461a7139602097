#include "tests/unit/runtime/plan/PlanTesting.h"

#include "compiler/config/ConfigJson.h"

#include <random>

namespace deft::plan {
namespace {

using tree::KvTree;

/// Appends to every living leaf; the cache is laid out with room behind each node.
void growLeaves(KvTree &tree, int tokens) {
  for (int node = 0; node < static_cast<int>(tree.nodes().size()); ++node)
    if (tree.isAlive(node) && tree.nodes()[node].firstChild < 0)
      (void)tree.append(node, tokens);
}

KvTree spread(KvTree tree) {
  int location = 0;
  for (int node = 0; node < static_cast<int>(tree.nodes().size()); ++node) {
    EXPECT_TRUE(tree.place(node, location));
    location += tree.nodes()[node].tokens + 200;
  }
  return tree;
}

constexpr spec::Partition kPartitions[] = {spec::Partition::Query,     spec::Partition::Node,
                                           spec::Partition::NodeChunk, spec::Partition::Flatten,
                                           spec::Partition::Cascade,   spec::Partition::Union};

TEST(AdvanceTest, GrownForestsAreCoveredExactlyOnce) {
  int advanced = 0, refused = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed)
    for (const spec::Partition partition : kPartitions) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", " + config::partitionName(partition));
      KvTree tree = spread(test::randomForest(seed));
      VariantFacts facts{2, 2};
      config::Config config = makeConfig(seed % 3 ? 64 : 0, {64, 16}, partition);
      config.order = config::kAllOrders[seed % 5 % 3];
      if (seed % 4 == 0) { // whole pages come first
        facts.pageSize = seed % 8 == 0 ? 16 : 64;
        config.phases[0].family = config.phases[1].family = config::Family::Sm90;
      }
      Plan plan = mustPlan(tree, facts, config, 8);
      std::mt19937_64 random(seed);
      for (int step = 0; step < 4; ++step) {
        for (int node = 0; node < static_cast<int>(tree.nodes().size()); ++node)
          if (tree.nodes()[node].firstChild < 0 && random() % 2)
            (void)tree.append(node, 1 + static_cast<int>(random() % 3));
        if (advance(tree, plan) == Advance::NeedsNewPlan) {
          ++refused;
          break;
        }
        ++advanced;
        const auto verified = verify(plan, tree, facts, config);
        ASSERT_TRUE(verified) << verified.error().message;
      }
    }
  EXPECT_GT(advanced, 2000);
  EXPECT_GT(refused, 100); // leaves that had no token, or queries that do not follow
}

TEST(AdvanceTest, DealtTokensGrow) {
  VariantFacts facts{4, 1};
  facts.pageSize = 16;
  std::size_t dealt = 0;
  int advanced = 0;
  config::Config config = makeConfig(0, {64});
  config.order = config::Order::Mixed;
  config.phases[0].family = config::Family::Sm90;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const auto some = [&](int most) { return 1 + static_cast<int>(random() % most); };
    KvTree tree = spread(test::levelTree({1, 4, 32}, {some(200), some(80), some(60)}));
    Plan plan = mustVerify(tree, facts, config, 1);
    for (const abi::Item &item : plan.items)
      dealt += item.dealtTiles > 0 ? 1 : 0;
    for (int step = 0; step < 20; ++step) {
      for (int node = 0; node < static_cast<int>(tree.nodes().size()); ++node)
        if (tree.nodes()[node].firstChild < 0 && random() % 2)
          (void)tree.append(node, some(3));
      if (advance(tree, plan) == Advance::NeedsNewPlan)
        break; // an item was mixed, because one of its warps would have nothing
      ++advanced;
      const auto verified = verify(plan, tree, facts, config);
      ASSERT_TRUE(verified) << verified.error().message;
    }
  }
  EXPECT_GT(dealt, 80U);
  EXPECT_GT(advanced, 900);
}

TEST(AdvanceTest, TokensInTurnNeedANewPlanWhereALeafHasGrown) {
  // Leaves of 16 rows below a root that both see, and leaves alone.
  for (const bool isShared : {true, false}) {
    KvTree tree = isShared ? test::levelTree({1, 2}, {250, 50}) : test::levelTree({2}, {50});
    config::Config config = makeConfig(0, {32});
    config.order = config::Order::Mixed;
    Plan plan = mustPlan(tree, {16, 1}, config, 1);
    const auto leaf = static_cast<int>(tree.nodes().size()) - 1;
    ASSERT_TRUE(tree.append(leaf, 1));
    EXPECT_EQ(advance(tree, plan), isShared ? Advance::NeedsNewPlan : Advance::Done);
  }
}

TEST(AdvanceTest, AnUnchangedTreeNeedsNothing) {
  const KvTree tree = test::levelTree({1, 3}, {50, 10});
  Plan plan = mustPlan(tree, {1, 1}, makeConfig(0));
  EXPECT_EQ(advance(tree, plan), Advance::Done);
}

TEST(AdvanceTest, MoreThanGrowthNeedsANewPlan) {
  KvTree tree = test::levelTree({1, 3}, {50, 10});
  Plan plan = mustPlan(tree, {1, 1}, makeConfig(0));
  const std::uint64_t generation = plan.generation;
  (void)tree.addQuery(2);
  EXPECT_EQ(advance(tree, plan), Advance::NeedsNewPlan);
  EXPECT_EQ(plan.generation, generation);
}

TEST(AdvanceTest, AQueryThatDoesNotFollowNeedsANewPlan) {
  KvTree tree;
  (void)tree.addNode(-1, 20);
  (void)tree.addQuery(0);
  (void)tree.addQuery(0, 20); // as many tokens today, and no more tomorrow
  Plan plan = mustPlan(tree, {1, 1}, makeConfig(0));
  growLeaves(tree, 1);
  EXPECT_EQ(advance(tree, plan), Advance::NeedsNewPlan);
}

TEST(AdvanceTest, AnEmptyLeafThatGetsTokensNeedsANewPlan) {
  KvTree tree = test::levelTree({1, 2}, {50, 0});
  Plan plan = mustPlan(tree, {1, 1}, makeConfig(0));
  growLeaves(tree, 1);
  EXPECT_EQ(advance(tree, plan), Advance::NeedsNewPlan);
}

TEST(AdvanceTest, GrowthOfWhatNobodyReadsChangesNothing) {
  KvTree tree = test::levelTree({1, 2}, {50, 10});
  const int unread = tree.addNode(0, 5).value();
  Plan plan = mustPlan(tree, {1, 1}, makeConfig(0));
  const std::vector<int> positions = plan.queryPos;
  ASSERT_TRUE(tree.append(unread, 500));
  EXPECT_EQ(advance(tree, plan), Advance::Done);
  EXPECT_EQ(plan.generation, tree.generation());
  EXPECT_EQ(plan.queryPos, positions);
}

TEST(AdvanceTest, LeavesThatGrewMuchNeedANewPlan) {
  KvTree tree = spread(test::levelTree({1, 2}, {50, 10}));
  Plan plan = mustPlan(tree, {1, 1}, makeConfig(0));
  growLeaves(tree, Planner::kMostGrowth);
  EXPECT_EQ(advance(tree, plan), Advance::Done);
  growLeaves(tree, 1);
  EXPECT_EQ(advance(tree, plan), Advance::NeedsNewPlan);
}

TEST(AdvanceTest, InvariantChunksDoNotOutgrowTheirSize) {
  KvTree tree = spread(test::levelTree({1, 2}, {50, 10}));
  Planner planner({.isInvariant = true});
  Plan plan;
  const config::Config config = makeConfig(16, {16}, spec::Partition::Node);
  ASSERT_TRUE(planner.make(tree, {1, 1}, config, 4, plan));
  growLeaves(tree, 6);
  EXPECT_EQ(advance(tree, plan), Advance::Done);
  growLeaves(tree, 1);
  EXPECT_EQ(advance(tree, plan), Advance::NeedsNewPlan);
  ASSERT_TRUE(planner.make(tree, {1, 1}, config, 4, plan));
  const auto verified = verify(plan, tree, {1, 1}, config);
  EXPECT_TRUE(verified) << verified.error().message;
}

TEST(AdvanceTest, APlanOfAnotherTreeIsLeftAlone) {
  KvTree big = test::levelTree({1, 30}, {50, 10}), small;
  Plan plan = mustPlan(big, {1, 1}, makeConfig(0));
  (void)small.addNode(-1, 5);
  plan.structureGeneration = small.structureGeneration();
  EXPECT_EQ(advance(small, plan), Advance::NeedsNewPlan);
}

} // namespace
} // namespace deft::plan
