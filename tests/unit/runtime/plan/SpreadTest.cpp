#include "runtime/plan/Spread.h"

#include "compiler/kernels/Sm90.h"
#include "tests/unit/runtime/plan/PlanTesting.h"

#include <numeric>
#include <random>

namespace deft::plan {
namespace {

using ::testing::ElementsAre;

double busiestOf(const std::vector<double> &us, int kvHeads, int blocks) {
  std::vector<double> loads;
  return busiestUs(us, kvHeads, blocks, loads);
}

std::vector<double> inOrder(const std::vector<double> &us, std::span<const int> order) {
  std::vector<double> moved;
  for (const int item : order)
    moved.push_back(us[static_cast<std::size_t>(item)]);
  return moved;
}

/// Wide blocks for items of every size.
config::Config wideConfig(int chunkTokens = 0, spec::Partition partition = spec::Partition::Auto) {
  config::Config config;
  config.partition = partition;
  config.chunkTokens = chunkTokens;
  config.phases = {{"tiles", -1, config::Family::Sm90, 128, 64, 4, kernels::kSm90Warps}};
  return config;
}

/// Agents' work: a long prompt with many readers, and turns of all lengths with few.
tree::KvTree agents(std::uint64_t seed, int nodes = 300) {
  std::mt19937_64 random(seed);
  tree::KvTree tree;
  EXPECT_TRUE(tree.addNode(-1, 12000));
  for (int i = 1; i < nodes; ++i) {
    const int parent = random() % 2 ? i - 1 : static_cast<int>(random() % static_cast<std::uint64_t>(i));
    EXPECT_TRUE(tree.addNode(parent, 1 + static_cast<int>(random() % 20 * (random() % 50))));
  }
  for (int i = nodes / 2; i < nodes; ++i)
    EXPECT_TRUE(tree.addQuery(i));
  return placed(std::move(tree));
}

TEST(SpreadTest, BlocksTakeUnitsInTurn) {
  EXPECT_EQ(busiestOf({5, 3, 2}, 1, 2), 7);
  EXPECT_EQ(busiestOf({5, 3, 2}, 2, 3), 8); // 5 5 3, 3 2 2
  EXPECT_EQ(busiestOf({5, 3}, 4, 2), 16);   // each block has two heads of both
  EXPECT_EQ(busiestOf({5}, 1, 4), 5);
}

TEST(SpreadTest, TheLongItemsOfTwoRoundsGoToDifferentBlocks) {
  ItemSpread spread;
  EXPECT_EQ(spread.find(std::vector<double>{9, 5, 4, 1}, 1, 2), 10);
  EXPECT_THAT(spread.order(), ElementsAre(0, 1, 3, 2));
}

TEST(SpreadTest, WhatSavesNothingStays) {
  ItemSpread spread;
  EXPECT_EQ(spread.find(std::vector<double>{2, 2, 2, 2}, 1, 2), 4);
  EXPECT_THAT(spread.order(), ElementsAre());
  EXPECT_EQ(spread.find(std::vector<double>{4, 3}, 1, 2), 4); // a unit for each block
  EXPECT_THAT(spread.order(), ElementsAre());
  EXPECT_EQ(spread.find(std::vector<double>{4, 3}, 4, 2), 14); // each block has some of each item
  EXPECT_THAT(spread.order(), ElementsAre());
  EXPECT_EQ(spread.find(std::vector<double>{}, 8, 132), 0);
}

TEST(SpreadTest, EveryItemHasAPlaceAndNoBlockMoreThanWasFound) {
  std::mt19937_64 random(3);
  ItemSpread spread;
  int moved = 0;
  for (int round = 0; round < 2000; ++round) {
    const int kvHeads = std::array{1, 2, 3, 4, 8, 16, 32}[random() % 7];
    const int blocks = std::array{1, 2, 7, 16, 33, 132, 264}[random() % 7];
    std::vector<double> us(random() % 300);
    for (double &one : us)
      one = static_cast<double>(1 + random() % 1000);
    std::sort(us.rbegin(), us.rend());
    const double found = spread.find(us, kvHeads, blocks),
                 before = us.empty() ? 0 : busiestOf(us, kvHeads, blocks);
    if (spread.order().empty()) {
      EXPECT_EQ(found, before);
      continue;
    }
    ++moved;
    std::vector<int> sorted(spread.order().begin(), spread.order().end());
    std::sort(sorted.begin(), sorted.end());
    std::vector<int> all(us.size());
    std::iota(all.begin(), all.end(), 0);
    ASSERT_EQ(sorted, all);
    EXPECT_NEAR(busiestOf(inOrder(us, spread.order()), kvHeads, blocks), found, 1e-6 * found);
    EXPECT_LE(found, (1 - ItemSpread::kLeastSaved) * before);
    EXPECT_GE(found * blocks, std::accumulate(us.begin(), us.end(), 0.0) * kvHeads * (1 - 1e-9));
  }
  EXPECT_GT(moved, 300);
}

TEST(SpreadTest, OnlyBlocksThatLastAreGivenItemsInTurn) {
  EXPECT_TRUE(hasLastingBlocks(wideConfig()));
  EXPECT_FALSE(hasLastingBlocks(makeConfig(0, {64}))); // family sm80
  config::Config config = wideConfig();
  config.phases.push_back({"narrow", -1, config::Family::Sm80, 16, 64, 2, 4});
  config.phases.front().rowsAbove = 16;
  EXPECT_FALSE(hasLastingBlocks(config));
}

TEST(SpreadTest, PlansOfUnevenItemsAreSpreadAndRight) {
  int spread = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed)
    for (const auto &[ratio, kvHeads] : {std::pair{8, 8}, {16, 1}})
      for (const spec::Partition partition :
           {spec::Partition::Auto, spec::Partition::Greedy, spec::Partition::Union}) {
        const tree::KvTree tree = agents(seed);
        const VariantFacts facts{ratio, kvHeads};
        const config::Config config = wideConfig(0, partition);
        const Plan plan = mustVerify(tree, facts, config);
        if (!plan.phases.front().isSpread)
          continue;
        ++spread;
        CostModel model;
        model.set(facts, config, 132);
        std::vector<double> us;
        for (const abi::Item &item : plan.items)
          us.push_back(model.unitUs(plan, item));
        EXPECT_NEAR(model.estimate(plan).fullestUs, busiestOf(us, kvHeads, 132), 1e-6);
        std::vector<abi::Item> byTokens = plan.items;
        std::stable_sort(byTokens.begin(), byTokens.end(),
                         [](const abi::Item &a, const abi::Item &b) { return a.tokens > b.tokens; });
        std::vector<double> before;
        for (const abi::Item &item : byTokens)
          before.push_back(model.unitUs(plan, item));
        EXPECT_LT(busiestOf(us, kvHeads, 132), 0.99 * busiestOf(before, kvHeads, 132));
      }
  EXPECT_GT(spread, 20);
}

/// Leaves grow in place: their runs are found although their items moved.
TEST(SpreadTest, SpreadPlansAdvance) {
  tree::KvTree tree = agents(1);
  const VariantFacts facts{16, 1};
  const config::Config config = wideConfig(0, spec::Partition::Greedy);
  Planner planner;
  Plan plan;
  ASSERT_TRUE(planner.make(tree, facts, config, 132, plan));
  ASSERT_TRUE(plan.phases.front().isSpread);
  std::vector<char> isInner(tree.nodes().size(), 0);
  for (const tree::Node &node : tree.nodes())
    if (node.parent >= 0)
      isInner[static_cast<std::size_t>(node.parent)] = 1;
  for (int step = 0; step < 20; ++step) {
    for (std::size_t node = 0; node < isInner.size(); ++node)
      ASSERT_TRUE(isInner[node] || tree.append(static_cast<int>(node), 1));
    ASSERT_EQ(planner.advance(tree, plan), Advance::Done);
    const auto verified = verify(plan, tree, facts, config);
    ASSERT_TRUE(verified) << verified.error().message;
  }
}

TEST(SpreadTest, SmallTreesAndOtherOrdersStayHeaviestFirst) {
  EXPECT_FALSE(mustVerify(agents(1, 12), {16, 1}, wideConfig()).phases.front().isSpread);
  config::Config alternate = wideConfig();
  alternate.order = config::Order::Alternate;
  EXPECT_FALSE(mustVerify(agents(1), {16, 1}, alternate).phases.front().isSpread);
}

} // namespace
} // namespace deft::plan
