#include "compiler/kernels/Sm90.h"
#include "runtime/plan/Planner.h"
#include "tests/support/Forest.h"

#include <gtest/gtest.h>

namespace deft::plan {
namespace {

/// Prices that are easy to add up: 1 GB/s is 1,000 bytes a microsecond.
config::Config priced(spec::Partition partition, int chunkTokens = 0) {
  config::Config config;
  config.partition = partition;
  config.chunkTokens = chunkTokens;
  config.phases.resize(2);
  config.phases[0].tileQ = 64;
  config.phases[0].rowsAbove = 16;
  config.cost.cacheGBs = 1;
  config.cost.againGBs = 2;
  config.cost.partialGBs = 4;
  config.cost.blockGflops = 1;
  config.cost.stepUs = 3;
  config.cost.itemUs = 5;
  config.cost.runUs = 0.5;
  config.cost.launchUs = 7;
  config.cost.mergeUs = 11;
  config.cost.slotUs = 13;
  return config;
}

PlanCost costOf(const tree::KvTree &tree, const VariantFacts &facts, const config::Config &config,
                int blocks) {
  const auto plan = makePlan(tree, facts, config, blocks);
  EXPECT_TRUE(plan) << plan.error().message;
  CostModel model;
  model.set(facts, config, blocks);
  return model.estimate(*plan);
}

/// 100 shared tokens and two leaves of 10, one query each, ratio 1, 2 KV heads, head dim 64.
TEST(CostModelTest, PricesAddUp) {
  const tree::KvTree tree = test::levelTree({1, 2}, {100, 10});
  const VariantFacts facts{1, 2, spec::Tensors::alike(64)};
  const PlanCost cost = costOf(tree, facts, priced(spec::Partition::Node), 1);
  EXPECT_EQ(cost.cacheBytes, 120 * 512);
  EXPECT_EQ(cost.againBytes, 0);
  EXPECT_EQ(cost.queryBytes, 2 * 2 * 2 * 64 * 2);
  EXPECT_EQ(cost.partialBytes, 4 * 2 * 2 * (64 * 2 + 4)); // four slots, two heads, written and read
  EXPECT_EQ(cost.units, 3 * 2);
  // Steps of 64 tokens by 16 rows: two for the prompt, one a leaf.
  const double stepGflop = 4e-9 * 64 * 16 * 64;
  EXPECT_NEAR(cost.paddedGflop, 4 * stepGflop * 2, 1e-12);
  EXPECT_NEAR(cost.usefulGflop, (200 + 20) * 4e-9 * 64 * 2, 1e-12);
  const double blockUs = 2 * (3 * (5 + 0.5) + 4 * (3 + stepGflop * 1e6));
  EXPECT_NEAR(cost.blockUs, blockUs, 1e-9);
  EXPECT_NEAR(cost.longestUs, 5.5 + 2 * (3 + stepGflop * 1e6), 1e-9);
  const double memoryUs = (cost.cacheBytes + cost.queryBytes) / 1e3 + cost.partialBytes / 4e3;
  EXPECT_NEAR(cost.workUs, memoryUs + blockUs, 1e-9);
  EXPECT_NEAR(cost.microseconds, memoryUs + blockUs + 7 + 11, 1e-9);
}

TEST(CostModelTest, ReadingAgainIsPricedApart) {
  const tree::KvTree tree = test::levelTree({1, 2}, {100, 10});
  const VariantFacts facts{1, 2, spec::Tensors::alike(64)};
  const PlanCost cost = costOf(tree, facts, priced(spec::Partition::Query, 4096), 1);
  EXPECT_EQ(cost.cacheBytes, 120 * 512);
  EXPECT_EQ(cost.againBytes, 100 * 512);
  EXPECT_EQ(cost.partialBytes, 0);
  EXPECT_NEAR(cost.microseconds - cost.workUs, 7, 1e-9); // nothing to merge
}

TEST(CostModelTest, NoBlockEndsBeforeTheLongestItem) {
  const tree::KvTree tree = test::levelTree({1}, {6400});
  const VariantFacts facts{1, 1, spec::Tensors::alike(64)};
  const PlanCost cost = costOf(tree, facts, priced(spec::Partition::Query, 1 << 20), 100);
  EXPECT_NEAR(cost.blockUs * 100, cost.longestUs, 1e-9);
  EXPECT_NEAR(cost.microseconds - cost.workUs, 7 + 0.99 * cost.longestUs, 1e-9);
}

TEST(CostModelTest, UnitsThatAreLeftOverTakeAsLongAsAFullRound) {
  const VariantFacts facts{1, 1, spec::Tensors::alike(64)};
  const auto price = [&](int requests) {
    const PlanCost cost =
        costOf(test::levelTree({requests}, {640}), facts, priced(spec::Partition::Query, 1 << 20), 4);
    EXPECT_NEAR(cost.blockUs * 4, requests * cost.longestUs, 1e-9);
    return cost.fullestUs / cost.longestUs;
  };
  EXPECT_NEAR(price(4), 1, 1e-9);
  EXPECT_NEAR(price(5), 2, 1e-9);
  EXPECT_NEAR(price(8), 2, 1e-9);
}

TEST(CostModelTest, RowStepsReplaceTheTile) {
  const tree::KvTree tree = test::levelTree({1, 3}, {64, 0});
  const VariantFacts facts{1, 1, spec::Tensors::alike(64)};
  config::Config config = priced(spec::Partition::Node);
  EXPECT_NEAR(costOf(tree, facts, config, 1).paddedGflop, 4e-9 * 64 * 16 * 64, 1e-15);
  config.cost.rowStep = 4;
  EXPECT_NEAR(costOf(tree, facts, config, 1).paddedGflop, 4e-9 * 64 * 4 * 64, 1e-15);
  config.cost.tokenStep = 48;
  EXPECT_NEAR(costOf(tree, facts, config, 1).paddedGflop, 4e-9 * 64 * 4 * 96, 1e-15);
}

/// One item of three requests of a step and a query each.
TEST(CostModelTest, StepsOfRowsThatShareNothingAreMasked) {
  config::Config config = priced(spec::Partition::Union, 4096);
  config.cost.tokenStep = 16;
  const auto maskedSteps = [&](const tree::KvTree &tree, int ratio, int rowStep) {
    const VariantFacts facts{ratio, 2, spec::Tensors::alike(64)};
    config.cost.rowStep = rowStep;
    config.cost.maskUs = 0;
    const double without = costOf(tree, facts, config, 1).blockUs;
    config.cost.maskUs = 13;
    return (costOf(tree, facts, config, 1).blockUs - without) / (2 * 13);
  };
  const tree::KvTree requests = test::levelTree({3}, {16});
  EXPECT_NEAR(maskedSteps(requests, 1, 0), 3, 1e-9);
  EXPECT_NEAR(maskedSteps(requests, 1, 4), 3, 1e-9);
  EXPECT_NEAR(maskedSteps(requests, 2, 8), 3, 1e-9);
  EXPECT_EQ(maskedSteps(requests, 2, 4), 0); // two groups
  EXPECT_EQ(maskedSteps(test::levelTree({1}, {16}), 1, 4), 0);
  EXPECT_EQ(maskedSteps(test::levelTree({1, 3}, {16, 16}), 1, 4), 0);
}

/// Below 65 rows the sm90 family works on two tiles at a time, and pads to its own modes.
TEST(CostModelTest, TheFamilyDecidesTheRateOfProducts) {
  config::Config config = priced(spec::Partition::Node);
  config.phases.resize(1);
  config.phases[0].tileQ = 128;
  config.phases[0].rowsAbove = -1;
  config.cost.wgmmaBlockGflops = 10;
  CostModel slow, fast;
  slow.set({1, 1, spec::Tensors::alike(64)}, config, 1);
  config.phases[0].family = config::Family::Sm90;
  fast.set({1, 1, spec::Tensors::alike(64)}, config, 1);
  EXPECT_NEAR(slow.stepUs(128) - 3, 10 * (fast.stepUs(128) - 3), 1e-9);
  EXPECT_NEAR(slow.stepUs(64) - 3, 2 * 20 * (fast.stepUs(64) - 3), 1e-9);
  EXPECT_NEAR(slow.stepUs(3) - 3, 8 * 20 * (fast.stepUs(3) - 3), 1e-9);
  config.phases[0].tileQ = 64; // a light block has a tile at a time, and one mode
  config.phases[0].warps = kernels::kSm90LightWarps;
  CostModel light;
  light.set({1, 1, spec::Tensors::alike(64)}, config, 1);
  EXPECT_NEAR(light.stepUs(64) - 1.7 * 3, 2 * (fast.stepUs(64) - 3), 1e-9);
  EXPECT_EQ(light.stepUs(3), light.stepUs(64));
}

/// A warpgroup of family sm90 passes over steps of which its 64 rows see nothing.
TEST(CostModelTest, WhatAWarpgroupDoesNotSeeIsPassedOver) {
  config::Config config = priced(spec::Partition::Union, 4096);
  config.phases.resize(1);
  config.phases[0] = {"tiles", -1, config::Family::Sm90, 128, 64, 4, kernels::kSm90Warps};
  config.cost.runUs = 0;
  const VariantFacts facts{64, 1, spec::Tensors::alike(64)}; // a query fills a warpgroup
  const auto steps = [&](const tree::KvTree &tree) {
    const PlanCost cost = costOf(tree, facts, config, 1);
    EXPECT_EQ(cost.units, 1);
    CostModel model;
    model.set(facts, config, 1);
    return (cost.blockUs - 5) / model.stepUs(2);
  };
  EXPECT_NEAR(steps(test::levelTree({1, 2}, {640, 0})), 10, 1e-9);
  EXPECT_NEAR(steps(test::levelTree({1, 2}, {640, 64})), 10 + 1, 1e-9);
}

/// A prompt cut into parts, of which all queries have a partial each.
TEST(CostModelTest, MergesOfManyPartialsTakeLonger) {
  const tree::KvTree tree = test::levelTree({1, 2}, {640, 0});
  const VariantFacts facts{1, 1, spec::Tensors::alike(64)};
  const auto mergeUs = [&](int chunk) {
    config::Config config = priced(spec::Partition::NodeChunk, chunk);
    const double with = costOf(tree, facts, config, 100).microseconds;
    config.cost.mergeUs = config.cost.slotUs = 0;
    return with - costOf(tree, facts, config, 100).microseconds;
  };
  EXPECT_EQ(mergeUs(640), 0);
  EXPECT_NEAR(mergeUs(80), 11, 1e-9); // eight are on their way at a time
  EXPECT_NEAR(mergeUs(64), 11 + 2 * 13, 1e-9);
}

/// 64 leaves, one row each: what 16 of them see belongs to one warp.
TEST(CostModelTest, TilesThatAreReadInTurnSaveAPartOfAStep) {
  tree::KvTree tree = test::levelTree({1, 64}, {1024, 32});
  config::Config config;
  config.partition = spec::Partition::Union;
  config.chunkTokens = 1 << 16;
  config.phases = {
      {.name = "light", .family = config::Family::Sm90, .tileQ = 64, .tileKv = 64, .stages = 2, .warps = 8}};
  const VariantFacts facts{1, 8, spec::Tensors::alike(128)};
  const double fromRoot = costOf(tree, facts, config, 132).longestUs;
  config.order = config::Order::Mixed;
  const Plan plan = *makePlan(tree, facts, config, 132);
  ASSERT_EQ(plan.items.size(), 1u);
  const abi::Item &item = plan.items[0];
  EXPECT_EQ(item.commonTokens, 1024);
  EXPECT_EQ(item.dealtTiles, 32);
  config.cost.turnStep = 0;
  const double apart = costOf(tree, facts, config, 132).longestUs;
  EXPECT_NEAR(apart, fromRoot, 1e-9);
  config.cost.turnStep = 0.5;
  const double stepUs =
      config.cost.stepUs * config.cost.lightStep + 4e-9 * 128 * 64 * 64 / config.cost.wgmmaBlockGflops * 1e6;
  EXPECT_NEAR(costOf(tree, facts, config, 132).longestUs, apart - 16 * 0.5 * stepUs, 1e-9);
}

/// 16 tiles that all see, and 64 leaves of 32 tokens, of which a dealt tile has 16 of each warp.
TEST(CostModelTest, KeysThatAreMadeCostMoreOfATileAndLessOfADealtOne) {
  const tree::KvTree tree = test::levelTree({1, 64}, {1024, 32});
  config::Config config;
  config.partition = spec::Partition::Union;
  config.chunkTokens = 1 << 16;
  config.phases = {
      {.name = "light", .family = config::Family::Sm90, .tileQ = 64, .tileKv = 64, .stages = 2, .warps = 8}};
  config.cost.turnStep = 0;
  config.cost.keyUs = 0.5;
  const VariantFacts facts{1, 8, spec::Tensors::alike(128)};
  VariantFacts making = facts;
  making.makesKeys = true;
  const auto keysUs = [&] {
    return costOf(tree, making, config, 132).longestUs - costOf(tree, facts, config, 132).longestUs;
  };
  EXPECT_NEAR(keysUs(), (16 + 32) * 0.5, 1e-9);
  config.order = config::Order::Mixed;
  EXPECT_NEAR(keysUs(), (16 + 0.4 * 32) * 0.5, 1e-9);
}

} // namespace
} // namespace deft::plan
