#include "tests/unit/runtime/plan/PlanTesting.h"

#include <cstring>

namespace deft::plan {
namespace {

using ::testing::ElementsAre;
using tree::KvTree;

TEST(PlannerTest, ATreeWithoutQueriesHasNoItems) {
  const Plan plan = mustPlan(KvTree(), {}, makeConfig(0));
  EXPECT_TRUE(plan.items.empty());
  EXPECT_THAT(plan.mergeBegin, ElementsAre(0));
  ASSERT_EQ(plan.phases.size(), 1u);
  EXPECT_EQ(plan.phases[0].itemCount, 0);
}

TEST(PlannerTest, SharedTokensAreReadOncePerTile) {
  const KvTree tree = test::levelTree({1, 4}, {100, 10}); // ratio 4: the four queries fill a tile of 16 rows
  const Plan plan = mustPlan(tree, {4, 1}, makeConfig(4096));
  ASSERT_EQ(plan.items.size(), 1u);
  EXPECT_EQ(plan.items[0].tokens, 140);
  EXPECT_EQ(plan.items[0].queryCount, 4);
  ASSERT_EQ(plan.items[0].runCount, 5);
  EXPECT_EQ(plan.runs[0].queryBegin, 0);
  EXPECT_EQ(plan.runs[0].queryEnd, 4);
  EXPECT_EQ(plan.runs[3].queryBegin, 2);
  EXPECT_EQ(plan.runs[3].queryEnd, 3);
  EXPECT_EQ(plan.runs[3].position, 100);
  EXPECT_EQ(plan.runs[3].begin, 120);
}

/// 256 leaves of 16 rows each: tiles of 128 rows would keep 32 blocks at work.
TEST(PlannerTest, UnionTilesAreNarrowerWhereMostBlocksWouldHaveNone) {
  const KvTree tree = placed(test::levelTree({1, 256}, {256, 32}));
  config::Config config = makeConfig(0, {128});
  config.phases[0].family = config::Family::Sm90;
  config.phases[0].warps = 12;
  const VariantFacts facts{16, 1};
  const Plan few = mustVerify(tree, facts, config, 32);
  EXPECT_EQ(few.items.size(), 32u);
  const Plan many = mustVerify(tree, facts, config, 132);
  EXPECT_EQ(many.items.size(), 64u);
  EXPECT_EQ(many.partialSlots, 0);
  CostModel model;
  model.set(facts, config, 132);
  EXPECT_LT(model.estimate(many).microseconds, 0.9 * model.estimate(few).microseconds);
  // Of few tokens, where it would save next to nothing, they stay wide.
  EXPECT_EQ(mustVerify(placed(test::levelTree({1, 64}, {16, 1})), facts, config, 132).items.size(), 8u);
}

TEST(PlannerTest, OneChunkWritesTheOutputDirectly) {
  const Plan plan = mustPlan(test::levelTree({1, 4}, {100, 10}), {4, 1}, makeConfig(144));
  EXPECT_EQ(plan.items[0].partialBegin, -1);
  EXPECT_EQ(plan.partialSlots, 0);
  EXPECT_TRUE(plan.mergeQuery.empty());
}

TEST(PlannerTest, SeveralChunksGoThroughTheMergeInPathOrder) {
  const Plan plan = mustPlan(test::levelTree({1}, {100}), {4, 1}, makeConfig(48));
  ASSERT_EQ(plan.items.size(), 3u); // 48 + 48 + 4: even parts of a third, rounded to the step
  EXPECT_EQ(plan.items[0].tokens, 48);
  EXPECT_EQ(plan.items[2].tokens, 4);
  EXPECT_EQ(plan.partialSlots, 3);
  EXPECT_THAT(plan.mergeQuery, ElementsAre(0));
  EXPECT_THAT(plan.mergeSlot, ElementsAre(0, 1, 2));
}

TEST(PlannerTest, AnItemIsNarrowedToTheQueriesThatSeeIt) {
  // 64 shared tokens, then two leaves of 64: the chunks of the leaves serve one query each.
  const Plan plan = mustPlan(test::levelTree({1, 2}, {64, 64}), {4, 1}, makeConfig(64));
  ASSERT_EQ(plan.items.size(), 3u);
  EXPECT_EQ(plan.items[0].queryCount, 2);
  EXPECT_EQ(plan.items[1].queryCount, 1);
  EXPECT_EQ(plan.items[2].queryBegin, 1);
  EXPECT_EQ(plan.partialSlots, 4);
  EXPECT_THAT(plan.mergeBegin, ElementsAre(0, 2, 4));
}

TEST(PlannerTest, AQueryEndingInsideANodeCutsIt) {
  KvTree tree;
  (void)tree.addNode(-1, 100);
  (void)tree.addQuery(0, 30);
  (void)tree.addQuery(0);
  const Plan plan = mustPlan(tree, {1, 1}, makeConfig(4096));
  ASSERT_EQ(plan.runs.size(), 2u);
  EXPECT_EQ(plan.runs[0].tokens, 30);
  EXPECT_EQ(plan.runs[0].queryBegin, 0);
  EXPECT_EQ(plan.runs[1].tokens, 70);
  EXPECT_EQ(plan.runs[1].queryBegin, 1);
  EXPECT_THAT(plan.queryPos, ElementsAre(29, 99));
}

TEST(PlannerTest, AQueryWithoutTokensIsMergedFromNothing) {
  KvTree tree;
  (void)tree.addNode(-1, 0);
  (void)tree.addQuery(0);
  const Plan plan = mustPlan(tree, {1, 1}, makeConfig(0));
  EXPECT_TRUE(plan.items.empty());
  EXPECT_THAT(plan.mergeQuery, ElementsAre(0));
  EXPECT_THAT(plan.mergeBegin, ElementsAre(0, 0));
  EXPECT_THAT(plan.queryPos, ElementsAre(-1));
}

TEST(PlannerTest, PhasesTakeItemsByTheirRows) {
  // The shared chunks have 16 * 4 rows, those of the leaves 4.
  const Plan plan = mustPlan(test::levelTree({1, 16}, {6400, 320}), {4, 1}, makeConfig(320, {64, 16}));
  ASSERT_EQ(plan.phases.size(), 2u);
  EXPECT_EQ(plan.phases[0].itemCount, 20);
  EXPECT_EQ(plan.phases[1].itemCount, 16);
}

TEST(PlannerTest, APhaseNeverTakesMoreRowsThanItsTile) {
  config::Config config = makeConfig(4096, {64, 16});
  config.phases[0].rowsAbove = 40; // the narrow phase's tile of 16 cannot serve 17 to 40 rows
  const KvTree tree = test::levelTree({1, 8}, {100, 4});
  const VariantFacts facts{4, 1};
  const Plan plan = mustPlan(tree, facts, config);
  const auto verified = verify(plan, tree, facts, config);
  EXPECT_TRUE(verified) << verified.error().message;
  EXPECT_EQ(plan.phases[0].itemCount, static_cast<int>(plan.items.size()));
}

TEST(PlannerTest, RequestsThatShareNothingDoNotShareATile) {
  const Plan plan = mustPlan(test::levelTree({8}, {1000}), {1, 8}, makeConfig(0), 16);
  EXPECT_EQ(plan.items.size(), 8u);
  for (const abi::Item &item : plan.items)
    EXPECT_EQ(item.queryCount, 1);
}

TEST(PlannerTest, AnOpenChunkFillsTheMachineAndNoMore) {
  const KvTree lonely = test::levelTree({1}, {32768});
  const VariantFacts facts{4, 8};
  const std::size_t items = mustPlan(lonely, facts, makeConfig(0), 132).items.size();
  EXPECT_GE(items * 8, 120u); // nearly a full wave at least, no more than a few
  EXPECT_LE(items * 8, 4 * 132u);
  const KvTree many = test::levelTree({256}, {1024}); // 2048 units of work without any cut
  EXPECT_EQ(mustPlan(many, facts, makeConfig(0), 132).partialSlots, 0);
}

TEST(PlannerTest, TheSameArgumentsGiveTheSamePlan) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const KvTree tree = test::randomForest(seed, {300, 300, 500});
    const Plan a = mustPlan(tree, {4, 8}, makeConfig(0, {64, 16}));
    Planner planner; // reads the tree in a step of its own, and has read another one before
    planner.read(test::randomForest(seed + 100, {300, 300, 500}), {4, 8});
    planner.read(tree, {4, 8});
    Plan b;
    ASSERT_TRUE(planner.makeOfRead(tree, {4, 8}, makeConfig(0, {64, 16}), 132, b));
    EXPECT_EQ(a.callerIndex, b.callerIndex);
    ASSERT_EQ(a.leaves.size(), b.leaves.size());
    EXPECT_EQ(0, std::memcmp(a.leaves.data(), b.leaves.data(), a.leaves.size() * sizeof(Plan::Leaf)));
    ASSERT_EQ(a.items.size(), b.items.size());
    EXPECT_EQ(0, std::memcmp(a.items.data(), b.items.data(), a.items.size() * sizeof(abi::Item)));
    ASSERT_EQ(a.runs.size(), b.runs.size());
    EXPECT_EQ(0, std::memcmp(a.runs.data(), b.runs.data(), a.runs.size() * sizeof(abi::Run)));
    EXPECT_EQ(a.mergeSlot, b.mergeSlot);
  }
}

/// Quadratic planning would take minutes here.
TEST(PlannerTest, DeepChainsOfEmptyNodesCostNothingPerTile) {
  KvTree tree;
  int last = tree.addNode(-1, 1).value();
  for (int i = 0; i < 200000; ++i)
    last = tree.addNode(last, 0).value();
  for (int i = 0; i < 200000; ++i)
    (void)tree.addQuery(last);
  const Plan plan = mustPlan(tree, {16, 1}, makeConfig(0));
  EXPECT_EQ(plan.items.size(), 200000u);
}

/// Every number of a run stays an int: only elements need more bits.
TEST(PlannerTest, NodesAtTheFarEndOfTheTable) {
  constexpr int kMost = tree::KvTree::kMaxTokens;
  KvTree tree;
  const int root = tree.addNode(-1, kMost - 1000, 0).value();
  const int leaf = tree.addNode(root, 1000, kMost - 1000).value();
  (void)tree.addQuery(leaf);
  for (const spec::Partition partition :
       {spec::Partition::Query, spec::Partition::Node, spec::Partition::NodeChunk, spec::Partition::Flatten,
        spec::Partition::Cascade, spec::Partition::Union}) {
    const Plan plan = mustVerify(tree, {1, 1}, makeConfig(kMost / 4, {16}, partition));
    EXPECT_EQ(plan.queryPos[0], kMost - 1);
    EXPECT_LE(plan.items[0].tokens, kMost / 4);
  }
  (void)mustVerify(tree, {1, 8}, makeConfig(0, {16}), 132);
}

TEST(PlannerTest, ErrorsSayWhatDoesNotFit) {
  EXPECT_EQ(makePlan(KvTree(), {32, 1}, makeConfig(0, {16}), 1).error().message,
            "the largest tile_q is 16 rows, one query has 32");
  EXPECT_FALSE(makePlan(KvTree(), {1, 1}, makeConfig(-1), 1));
}

TEST(PlannerTest, SummaryCountsWhatIsRead) {
  const PlanSummary summary =
      summarize(mustPlan(test::levelTree({1, 2}, {64, 64}), {4, 1}, makeConfig(64)), {4, 1});
  EXPECT_EQ(summary.items, 3);
  EXPECT_EQ(summary.directItems, 0);
  EXPECT_EQ(summary.itemTokens, 192);
  EXPECT_EQ(summary.rowTokens, 4 * (2 * 64 + 64 + 64));
  EXPECT_EQ(summary.mergedQueries, 2);
}

} // namespace
} // namespace deft::plan
