/// Plans of trees over ranks: each rank's plan reads what it holds of each query's path, once.

#include "runtime/plan/VisibleTree.h"
#include "tests/support/Masks.h"
#include "tests/support/RankLayouts.h"
#include "tests/unit/runtime/plan/PlanTesting.h"

#include <random>

namespace deft::plan {
namespace {

using tree::KvTree;
using tree::RankLayout;
using tree::Ranks;

/// With room behind each node, so that leaves can grow.
KvTree spread(KvTree tree) {
  int location = 3;
  for (int node = 0; node < static_cast<int>(tree.nodes().size()); ++node) {
    EXPECT_TRUE(tree.place(node, location));
    location += tree.nodes()[static_cast<std::size_t>(node)].tokens + 70;
  }
  return tree;
}

VariantFacts factsOf(std::uint64_t turn, bool readsKvPos) {
  const int ratios[] = {1, 4, 3, 16};
  VariantFacts facts{ratios[turn % 4], 2};
  facts.readsKvPos = readsKvPos;
  return facts;
}

class RankPlans : public testing::TestWithParam<spec::Partition> {};

TEST_P(RankPlans, ReadWhatTheRankHolds) {
  Planner planner;
  Plan plan;
  for (std::uint64_t seed = 0; seed < 250; ++seed)
    for (const int count : {1, 2, 3, 4}) {
      const KvTree tree = spread(seed % 2 == 0 ? test::randomForest(seed) : test::causalForest(seed));
      const VariantFacts facts = factsOf(seed, seed % 3 == 0);
      config::Config config = makeConfig(seed % 3 == 1 ? 64 : 0, {64, 16}, GetParam());
      config.order = config::kAllOrders[seed % 5 % 3];
      std::int64_t pairs = 0;
      for (int rank = 0; rank < count; ++rank) {
        SCOPED_TRACE("seed " + std::to_string(seed) + ", rank " + std::to_string(rank) + " of " +
                     std::to_string(count));
        const KvTree own = test::ofRank(tree, count, rank, seed);
        const auto made = planner.make(own, facts, config, 8, plan);
        ASSERT_TRUE(made) << made.error().message;
        const auto verified = verify(plan, own, facts, config);
        ASSERT_TRUE(verified) << verified.error().message;
        for (const abi::Run &run : plan.runs)
          for (int q = run.queryBegin; q < run.queryEnd; ++q)
            pairs += run.slope == 0 ? run.tokens : std::min(run.tokens, q - run.queryBegin + 1);
      }
      std::int64_t all = 0;
      for (const tree::Query &query : tree.queries())
        all += tree.pathTokens(query);
      ASSERT_EQ(pairs, all) << "seed " << seed << ", " << count << " ranks";
    }
}

TEST_P(RankPlans, ReadWhatMasksShow) {
  Planner planner;
  Plan plan;
  std::uint64_t turn = 0;
  for (const auto &[name, variant] : test::modelMasks())
    for (std::uint64_t seed = 0; seed < 8; ++seed, ++turn) {
      const int count = static_cast<int>(turn % 4) + 1;
      const KvTree tree = spread(turn % 2 == 0 ? test::randomForest(seed) : test::causalForest(seed));
      const auto device = turn % 3 == 0 ? config::DeviceKind::Cpu : config::DeviceKind::Gpu;
      const VariantFacts facts = VariantFacts::of(variant, device);
      const config::Config config = makeConfig(seed % 2 ? 64 : 0, {64, 16}, GetParam());
      for (int rank = 0; rank < count; ++rank) {
        SCOPED_TRACE(name + ", seed " + std::to_string(seed) + ", rank " + std::to_string(rank) + " of " +
                     std::to_string(count));
        const KvTree own = test::ofRank(tree, count, rank, turn);
        const auto made = planner.make(own, facts, config, 8, plan);
        ASSERT_TRUE(made) << made.error().message;
        const auto verified = verify(plan, own, facts, config);
        ASSERT_TRUE(verified) << verified.error().message;
      }
    }
}

INSTANTIATE_TEST_SUITE_P(EveryPartition, RankPlans, testing::ValuesIn(kAllPartitions), partitionTestName);

TEST(RankPlanTest, LeavesThatOneRankHoldsGrowInPlaceOnAll) {
  int inPlace = 0, elsewhere = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    KvTree tree = spread(test::randomForest(seed));
    const int count = static_cast<int>(seed % 4) + 1;
    const VariantFacts facts = factsOf(seed, seed % 2 == 0);
    const config::Config config = makeConfig(64, {64, 16}, kAllPartitions[seed % kAllPartitions.size()]);
    std::vector<KvTree> trees;
    std::vector<Plan> plans;
    for (int rank = 0; rank < count; ++rank) {
      trees.push_back(test::ofRank(tree, count, rank, seed));
      plans.push_back(mustVerify(trees.back(), facts, config, 8));
    }
    std::mt19937_64 random(seed);
    for (int step = 0; step < 4; ++step) {
      for (int node = 0; node < static_cast<int>(tree.nodes().size()); ++node) {
        if (tree.nodes()[static_cast<std::size_t>(node)].firstChild >= 0 || random() % 2 == 0)
          continue;
        const int tokens = static_cast<int>(random() % 5) + 1;
        for (KvTree &own : trees)
          ASSERT_TRUE(own.append(node, tokens));
      }
      for (int rank = 0; rank < count; ++rank) {
        SCOPED_TRACE("seed " + std::to_string(seed) + ", rank " + std::to_string(rank));
        const auto at = static_cast<std::size_t>(rank);
        if (advance(trees[at], plans[at]) == Advance::NeedsNewPlan) {
          plans[at] = mustVerify(trees[at], facts, config, 8);
          continue;
        }
        ++inPlace;
        for (const Plan::Leaf &leaf : plans[at].leaves)
          elsewhere += leaf.canGrow == 2 && leaf.tokens > leaf.plannedTokens ? 1 : 0;
        const auto verified = verify(plans[at], trees[at], facts, config);
        ASSERT_TRUE(verified) << verified.error().message;
        EXPECT_EQ(plans[at].readTokens, mustPlan(trees[at], facts, config, 8).readTokens);
      }
    }
  }
  EXPECT_GT(inPlace, 300);
  EXPECT_GT(elsewhere, 100);
}

/// Two branches below a prompt, interleaved by single tokens over four ranks.
KvTree interleaved(int rank) {
  KvTree tree;
  const int prompt = tree.addNode(-1, 4000, 0).value();
  for (int i = 0; i < 2; ++i)
    (void)tree.addQuery(tree.addNode(prompt, 10, 4000 + 100 * i).value());
  tree.setRanks(Ranks::make(4, rank, RankLayout::Interleaved, 1).value());
  return tree;
}

TEST(RankPlanTest, TokensThatFollowEachOtherInTheCacheAreOneRun) {
  for (int rank = 0; rank < 4; ++rank) {
    const KvTree tree = interleaved(rank);
    const Plan plan = mustVerify(tree, factsOf(0, false), makeConfig(0, {16}), 1);
    EXPECT_EQ(plan.runs.size(), 3U);
    EXPECT_EQ(plan.queryPos, (std::vector<int>{4009, 4009})) << "positions are those of the whole tree";
    EXPECT_EQ(plan.tableTokens, 1028 - (rank < 2 ? 0 : 1)); // tokens 4100 to 4109, four ranks
  }
}

TEST(RankPlanTest, WhoReadsPositionsReadsTokenByToken) {
  const KvTree tree = interleaved(1);
  const Plan plan = mustVerify(tree, factsOf(0, true), makeConfig(0, {16}), 1);
  EXPECT_GT(plan.runs.size(), 1000U);
}

TEST(RankPlanTest, AQueryWithoutTokensOnTheRankHasAnEmptyMerge) {
  KvTree tree = test::levelTree({1, 2}, {16, 16});
  ASSERT_TRUE(tree.place(0, 0));
  ASSERT_TRUE(tree.place(1, 16));
  ASSERT_TRUE(tree.place(2, 32));
  tree.setRanks(Ranks::make(2, 1, RankLayout::ByNode, 1, {0, 0, 1}).value());
  const Plan plan = mustVerify(tree, factsOf(0, false), makeConfig(0, {16}), 1);
  EXPECT_EQ(plan.readTokens, 16);
  ASSERT_EQ(plan.mergeQuery.size(), 1U);
  EXPECT_EQ(plan.callerIndex[static_cast<std::size_t>(plan.mergeQuery[0])], 0);
  EXPECT_TRUE(plan.mergeSlot.empty());
}

/// Ranks plan by themselves: the same tree gives the same plan, whatever was planned before.
TEST(RankPlanTest, PlansDependOnTheTreeAlone) {
  const KvTree tree = interleaved(2);
  const Plan first = mustPlan(tree, factsOf(0, false), makeConfig(0, {64, 16}));
  const Plan second = mustPlan(KvTree(tree), factsOf(0, false), makeConfig(0, {64, 16}));
  ASSERT_EQ(first.runs.size(), second.runs.size());
  EXPECT_EQ(first.mergeSlot, second.mergeSlot);
  EXPECT_EQ(first.callerIndex, second.callerIndex);
}

} // namespace
} // namespace deft::plan
