#include "compiler/config/ConfigJson.h"
#include "compiler/config/DevicePrices.h"
#include "compiler/config/PriceNames.h"
#include "runtime/plan/Planner.h"
#include "runtime/plan/Verify.h"
#include "runtime/tree/CachePlacement.h"
#include "tests/support/Forest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace deft::plan {
namespace {

using ::testing::ElementsAre;
using tree::KvTree;

config::Config autoConfig(int chunkTokens = 0) {
  config::Config config;
  config.partition = spec::Partition::Auto;
  config.chunkTokens = chunkTokens;
  config.phases.resize(2);
  config.phases[0].tileQ = 64;
  config.phases[0].rowsAbove = 16;
  return config;
}

double rankOf(const Plan &plan, const VariantFacts &facts, const config::Config &config, int blocks) {
  CostModel model;
  model.set(facts, config, blocks);
  return plan::rankOf(model.estimate(plan).microseconds, config.cost, plan);
}

std::vector<std::pair<std::string, KvTree>> trees() {
  std::vector<std::pair<std::string, KvTree>> trees = test::edgeTrees();
  for (int seed = 0; seed < 40; ++seed)
    trees.emplace_back("seed " + std::to_string(seed),
                       test::randomForest(static_cast<std::uint64_t>(seed), {60, 400, 80}));
  trees.emplace_back("few-shot", test::levelTree({1, 20}, {4000, 200}));
  trees.emplace_back("deep", test::levelTree({1, 2, 4, 8, 16, 32, 64, 128, 256}, std::vector<int>(9, 16)));
  trees.emplace_back("wide", test::levelTree({1, 256}, {256, 32}));
  trees.emplace_back("alone", test::levelTree({16}, {1000}));
  for (auto &[name, tree] : trees)
    EXPECT_TRUE(tree::placeInCache(tree, {})) << name;
  return trees;
}

/// But for one percent, which no other plan is tried for.
TEST(AutoTest, NeverCostsMoreThanAnyPartition) {
  for (const auto &[name, tree] : trees())
    for (int chunk : {0, 256})
      for (int ratio : {1, 4, 16}) {
        SCOPED_TRACE(name + ", chunk " + std::to_string(chunk) + ", ratio " + std::to_string(ratio));
        const VariantFacts facts{ratio, 8};
        config::Config config = autoConfig(chunk);
        const auto chosen = makePlan(tree, facts, config, 264);
        ASSERT_TRUE(chosen) << chosen.error().message;
        EXPECT_NE(chosen->partition, spec::Partition::Auto);
        const auto verified = verify(*chosen, tree, facts, config);
        ASSERT_TRUE(verified) << verified.error().message;
        const double least = rankOf(*chosen, facts, config, 264);
        for (spec::Partition partition : kAutoPartitions) {
          config.partition = partition;
          const auto plan = makePlan(tree, facts, config, 264);
          ASSERT_TRUE(plan) << plan.error().message;
          EXPECT_EQ(plan->partition, partition);
          EXPECT_LE(kWorthTrying * least, rankOf(*plan, facts, config, 264) * (1 + 1e-9));
        }
      }
}

TEST(AutoTest, NeverCostsMoreThanItsPartitionWithAnyChunk) {
  const VariantFacts facts{4, 8};
  for (const auto &[name, tree] : trees()) {
    SCOPED_TRACE(name);
    const auto chosen = makePlan(tree, facts, autoConfig(), 264);
    ASSERT_TRUE(chosen);
    for (int chunk : kAutoChunks) {
      config::Config config = autoConfig(chunk);
      config.partition = chosen->partition;
      const auto plan = makePlan(tree, facts, config, 264);
      ASSERT_TRUE(plan);
      EXPECT_LE(rankOf(*chosen, facts, config, 264), rankOf(*plan, facts, config, 264) * (1 + 1e-9));
    }
  }
}

/// 16 prompts and their answers at 64/8, measured on an H200: 94 us without partials, 106 with chunks of 512
/// tokens, which are 3 % cheaper by the model.
TEST(AutoTest, NearATieNothingIsMerged) {
  KvTree tree;
  for (const auto &[tokens, answers] : {std::pair(325, 11),
                                        {573, 13},
                                        {367, 11},
                                        {312, 8},
                                        {760, 14},
                                        {681, 11},
                                        {636, 9},
                                        {659, 13},
                                        {634, 11},
                                        {756, 12},
                                        {496, 12},
                                        {651, 12},
                                        {767, 12},
                                        {611, 11},
                                        {549, 12},
                                        {305, 11}}) {
    const int root = tree.addNode(-1, tokens).value();
    for (int answer = 0; answer < answers; ++answer)
      ASSERT_TRUE(tree.addQuery(tree.addNode(root, 400).value()));
  }
  ASSERT_TRUE(tree::placeInCache(tree, {}));
  const VariantFacts facts{8, 8};
  config::Config config = autoConfig();
  config.phases = {{.name = "tiles", .family = config::Family::Sm90, .tileQ = 64, .stages = 2, .warps = 8}};
  const auto chosen = makePlan(tree, facts, config, 264);
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->partialSlots, 0);
  config.cost.mergedShare = 0;
  const auto cheapest = makePlan(tree, facts, config, 264);
  ASSERT_TRUE(cheapest);
  EXPECT_GT(cheapest->partialSlots, 0);
}

/// Otherwise the choice is no choice.
TEST(AutoTest, DifferentTreesGetDifferentPartitions) {
  std::set<spec::Partition> chosen;
  for (const auto &[name, tree] : trees())
    for (int ratio : {1, 16})
      if (const auto plan = makePlan(tree, {ratio, 8}, autoConfig(), 264))
        chosen.insert(plan->partition);
  EXPECT_GE(chosen.size(), 3U);
}

TEST(AutoTest, PlannerKeepsItsChoiceForTheClass) {
  const VariantFacts facts{4, 8};
  Planner planner;
  Plan first, second;
  const KvTree small = test::levelTree({1, 20}, {4000, 200}), grown = test::levelTree({1, 20}, {4000, 201});
  ASSERT_TRUE(planner.make(small, facts, autoConfig(), 264, first));
  ASSERT_TRUE(planner.make(grown, facts, autoConfig(), 264, second));
  EXPECT_EQ(first.partition, second.partition);
  const auto again = makePlan(grown, facts, autoConfig(), 264);
  ASSERT_TRUE(again);
  EXPECT_NEAR(rankOf(second, facts, autoConfig(), 264), rankOf(*again, facts, autoConfig(), 264), 1);
}

/// Items of trees of one class, one after the other, and of the last one where it is the first. At 16/1 tiles
/// of 128 rows keep less than half of the blocks at work.
struct ItemsOfClass {
  std::vector<std::size_t> items;
  std::size_t fresh = 0;

  ItemsOfClass(int rootTokens, int leaves, std::initializer_list<int> leafTokens) {
    const VariantFacts facts{16, 1};
    config::Config config = autoConfig();
    config.phases = {
        {.name = "tiles", .family = config::Family::Sm90, .tileQ = 128, .stages = 4, .warps = 12}};
    Planner planner;
    std::set<std::uint64_t> classes;
    for (const int tokens : leafTokens) {
      KvTree tree = test::levelTree({1, leaves}, {rootTokens, tokens});
      EXPECT_TRUE(tree::placeInCache(tree, {}));
      Plan plan;
      EXPECT_TRUE(planner.make(tree, facts, config, 132, plan));
      const auto verified = verify(plan, tree, facts, config);
      EXPECT_TRUE(verified) << verified.error().message;
      items.push_back(plan.items.size());
      fresh = makePlan(tree, facts, config, 132).value().items.size();
      classes.insert(classOf(planner.read(tree, facts), facts, config, 132));
    }
    EXPECT_EQ(classes.size(), 1u);
  }
};

TEST(AutoTest, PlannerKeepsItsTilesForTheClass) {
  const ItemsOfClass narrowed(64, 256, {36, 32}); // by so much that the second one need not be asked
  EXPECT_THAT(narrowed.items, ElementsAre(64, 64));
  EXPECT_EQ(narrowed.fresh, 32u);
}

TEST(AutoTest, TilesThatWereANearThingAreFoundAgain) {
  const ItemsOfClass byLittle(64, 256, {32, 36}); // what the narrower ones saved was not enough
  EXPECT_THAT(byLittle.items, ElementsAre(32, 64));
  const ItemsOfClass byChance(128, 200, {48, 44}); // the widest ones were no wider than these
  EXPECT_THAT(byChance.items, ElementsAre(50, 50));
}

TEST(AutoTest, TheChoiceAsAConfigGivesThePlanAgain) {
  for (const auto &[name, tree] : trees()) {
    SCOPED_TRACE(name);
    Planner planner;
    Plan chosen;
    config::Config config = autoConfig();
    ASSERT_TRUE(planner.make(tree, {4, 8}, config, 132, chosen));
    config.partition = planner.lastChoice().partition;
    config.chunkTokens = planner.lastChoice().chunkTokens;
    const auto again = makePlan(tree, {4, 8}, config, 132);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->partition, chosen.partition);
    EXPECT_EQ(again->chunkTokens, chosen.chunkTokens);
    EXPECT_EQ(again->items.size(), chosen.items.size());
    EXPECT_EQ(again->partialSlots, chosen.partialSlots);
  }
}

/// What a partition cannot do with less is never more than what it does.
TEST(AutoTest, LeastIsNeverMoreThanThePlan) {
  for (const auto &[name, tree] : trees())
    for (int ratio : {1, 4, 16}) {
      const VariantFacts facts{ratio, 8};
      config::Config config = autoConfig();
      CostModel model;
      model.set(facts, config, 264);
      TreeView view;
      view.build(tree);
      const LeastWork work = leastWorkOf(view, model, flattenChunk(view, facts.kvHeads, 264));
      for (spec::Partition partition : kAutoPartitions) {
        SCOPED_TRACE(name + ", ratio " + std::to_string(ratio) + ", " + config::partitionName(partition));
        config.partition = partition;
        const auto plan = makePlan(tree, facts, config, 264);
        ASSERT_TRUE(plan) << plan.error().message;
        const LowerBound least = lowerBoundOf(partition, work, model);
        EXPECT_LE(least.us, model.estimate(*plan).microseconds * (1 + 1e-9));
        EXPECT_LE(least.rank(model), rankOf(*plan, facts, config, 264) * (1 + 1e-9));
        EXPECT_LE(least.runs, static_cast<std::int64_t>(plan->runs.size()));
      }
    }
}

/// A chain of 20,000 nodes, asked at its last 500: `node` would make 320,000 items and 10 million partials.
/// No such plan is made to be thrown away.
TEST(AutoTest, WhatIsDearForCertainIsNotTried) {
  KvTree tree;
  constexpr int kNodes = 20'000;
  for (int i = 0; i < kNodes; ++i)
    ASSERT_TRUE(tree.addNode(i - 1, 16));
  for (int i = 0; i < 500; ++i)
    ASSERT_TRUE(tree.addQuery(kNodes - 1 - i));
  ASSERT_TRUE(tree::placeInCache(tree, {}));
  Planner planner;
  Plan plan;
  const auto made = planner.make(tree, {4, 8}, autoConfig(), 264, plan);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_LT(plan.items.capacity(), 150'000u);
  EXPECT_LT(plan.mergeSlot.capacity(), 5'000'000u);
}

/// A hundred thousand nodes of a token below each other and a query on each: any plan has a run for each node
/// above each tile. Said before any of it is made.
TEST(AutoTest, PlansThatCannotBeAreNotBegun) {
  KvTree tree;
  constexpr int kNodes = 100'000;
  for (int i = 0; i < kNodes; ++i) {
    ASSERT_TRUE(tree.addNode(i - 1, 1));
    ASSERT_TRUE(tree.addQuery(i));
  }
  for (spec::Partition partition : {spec::Partition::Auto, spec::Partition::Union, spec::Partition::Query}) {
    config::Config config = autoConfig();
    config.partition = partition;
    Plan plan;
    const auto made = Planner().make(tree, {4, 8}, config, 264, plan);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().message,
              "the plan needs at least 312503125 runs, at most 67108864 can be planned");
    EXPECT_EQ(plan.runs.own().capacity(), 0u);
  }
}

/// One item of four such rows pads as little as four of one row, and starts once, but masks every step.
TEST(AutoTest, RequestsThatShareNothingStayApartOnProcessors) {
  for (int ratio : {1, 2, 3, 4})
    for (int tokens : {512, 4096})
      for (int threads : {1, 2, 16}) {
        SCOPED_TRACE("ratio " + std::to_string(ratio) + ", " + std::to_string(tokens) + " tokens, " +
                     std::to_string(threads) + " threads");
        config::Config config = autoConfig();
        config.cost = config::processorPrices(threads);
        const auto plan = makePlan(test::levelTree({16}, {tokens}), {ratio, 8}, config, threads);
        ASSERT_TRUE(plan) << plan.error().message;
        for (const abi::Item &item : plan->items)
          EXPECT_EQ(item.queryCount, 1);
      }
}

TEST(AutoTest, ClassesTellApartWhatDecides) {
  const VariantFacts facts{4, 8};
  std::set<std::uint64_t> keys;
  TreeView view;
  const auto add = [&](const KvTree &tree, const VariantFacts &facts, const config::Config &config,
                       int blocks) {
    view.build(tree);
    keys.insert(classOf(view, facts, config, blocks));
  };
  const KvTree tree = test::levelTree({1, 20}, {4000, 200});
  add(tree, facts, autoConfig(), 264);
  add(tree, facts, autoConfig(), 264);
  EXPECT_EQ(keys.size(), 1U);
  add(test::levelTree({1, 40}, {4000, 200}), facts, autoConfig(), 264);
  add(test::levelTree({1, 20}, {1000, 200}), facts, autoConfig(), 264);
  add(test::levelTree({1, 1, 20}, {2000, 2000, 200}), facts, autoConfig(), 264);
  add(tree, {1, 8}, autoConfig(), 264);
  add(tree, {4, 1}, autoConfig(), 264);
  add(tree, facts, autoConfig(512), 264);
  add(tree, facts, autoConfig(), 132);
  config::Config priced = autoConfig();
  priced.cost.itemUs = 9;
  add(tree, facts, priced, 264);
  config::Config shaped = autoConfig();
  shaped.phases[0].tileKv = 32;
  add(tree, facts, shaped, 264);
  VariantFacts making = facts;
  making.makesKeys = true;
  add(tree, making, autoConfig(), 264);
  EXPECT_EQ(keys.size(), 11U);
}

TEST(AutoTest, ADeviceWithAnyOtherPriceIsOfAnotherClass) {
  TreeView view;
  view.build(test::levelTree({1, 20}, {4000, 200}));
  std::set<std::uint64_t> keys{classOf(view, {4, 8}, autoConfig(), 264)};
  for (const config::PriceName &price : config::priceNames()) {
    config::Config other = autoConfig();
    other.cost.*price.member += 1;
    EXPECT_TRUE(keys.insert(classOf(view, {4, 8}, other, 264)).second) << price.key;
  }
}

TEST(AutoMemoryTest, ForgetsTheOldest) {
  AutoMemory memory;
  for (std::uint64_t key = 0; key < 65; ++key)
    memory.remember(key, {spec::Partition::Greedy, static_cast<int>(key)});
  EXPECT_FALSE(memory.find(0));
  for (std::uint64_t key = 1; key < 65; ++key)
    EXPECT_EQ(memory.find(key)->choice, (Choice{spec::Partition::Greedy, static_cast<int>(key)}));
  EXPECT_FALSE(memory.find(65));
}

} // namespace
} // namespace deft::plan
