/// Planning allocates nothing once it has seen a tree of the size. A program of its own: it counts every call
/// of operator new.

#include "compiler/config/ConfigJson.h"
#include "runtime/plan/BeamPlanner.h"
#include "tests/support/CountAllocations.h"
#include "tests/unit/runtime/plan/PlanTesting.h"

namespace deft::plan {
namespace {

using test::allocations;

TEST(AllocationTest, TheHookCounts) {
  const long long before = allocations;
  std::vector<int> some(100);
  EXPECT_EQ(allocations, before + 1);
  EXPECT_EQ(some.size(), 100u);
}

TEST(AllocationTest, TheSecondPlanOfASizeAllocatesNothing) {
  for (const spec::Partition partition : kAllPartitions)
    for (const int chunk : {0, 64})
      for (const auto &[order, pageSize] : {std::pair{config::Order::FromRoot, 0},
                                            {config::Order::FromRoot, 16},
                                            {config::Order::Mixed, 16}}) {
        SCOPED_TRACE(config::partitionName(partition) + ", chunk " + std::to_string(chunk) + ", " +
                     config::orderName(order) + ", pages of " + std::to_string(pageSize));
        // Queries in falling order of position, so that the sort of a node's own queries is part of it.
        tree::KvTree tree = placed(test::randomForest(77, {900, 200, 900}));
        for (int position : {9, 5, 3, 1})
          (void)tree.addQuery(0, std::min(position, tree.nodes()[0].tokens));
        config::Config config = makeConfig(chunk, {64, 16}, partition);
        config.order = order;
        VariantFacts facts{4, 8};
        facts.pageSize = pageSize;
        if (pageSize > 0)
          for (config::PhaseConfig &phase : config.phases)
            phase.family = config::Family::Sm90; // whose whole pages come first
        Planner planner;
        Plan plan;
        // Twice: the first one makes room, and `auto` remembers what it chose.
        for (int i = 0; i < 2; ++i)
          ASSERT_TRUE(planner.make(tree, facts, config, 132, plan));
        const long long before = allocations;
        for (int i = 0; i < 3; ++i)
          ASSERT_TRUE(planner.make(tree, facts, config, 132, plan));
        EXPECT_EQ(allocations - before, 0);
      }
}

TEST(AllocationTest, TheSecondSearchOfASizeAllocatesNothing) {
  tree::BeamTree beams = tree::BeamTree::make({16, 8, 2000}).value();
  const tree::BeamTree::History history{{0, 100}};
  const config::Config config = makeConfig(0, {64});
  BeamPlanner planner;
  Plan plan;
  long long before = 0;
  for (int search = 0; search < 2; ++search) {
    ASSERT_TRUE(beams.start({&history, 1}));
    before = allocations;
    std::vector<int> parents(500, 0);
    for (int step = 0; step < 6; ++step) {
      ASSERT_TRUE(beams.advance(parents));
      ASSERT_TRUE(planner.make(beams, {2, 8}, config, 100, plan));
      ASSERT_TRUE(planner.wasDirect());
      for (std::size_t i = 0; i < parents.size(); ++i)
        parents[i] = static_cast<int>(i * i % 311 + i % 7);
    }
  }
  EXPECT_EQ(allocations - before, 1); // the list of parents
}

TEST(AllocationTest, AdvancingAllocatesNothing) {
  tree::KvTree tree = test::levelTree({1, 8, 64}, {500, 100, 20});
  Planner planner;
  Plan plan;
  ASSERT_TRUE(planner.make(tree, {4, 8}, makeConfig(0, {64, 16}), 132, plan));
  for (int step = 0; step < 5; ++step) {
    for (int leaf = 9; leaf < 73; ++leaf)
      ASSERT_TRUE(tree.append(leaf, 1));
    const long long before = allocations;
    EXPECT_EQ(planner.advance(tree, plan), Advance::Done);
    EXPECT_EQ(allocations, before);
  }
}

} // namespace
} // namespace deft::plan
