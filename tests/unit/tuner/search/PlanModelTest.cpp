#include "tuner/search/PlanModel.h"

#include "compiler/config/DevicePrices.h"
#include "tests/support/Forest.h"
#include "tuner/space/MakeSpace.h"

#include <gtest/gtest.h>

#include <cmath>

namespace deft::search {
namespace {

spec::Variant variant() {
  spec::Variant variant;
  variant.name = "test";
  variant.queryHeads = 32;
  variant.kvHeads = 8;
  variant.tensors = spec::Tensors::alike(128);
  return variant;
}

TEST(PlanModelTest, IsTheCostModelOfThePlan) {
  const auto space = space::makeSpace(variant(), {nullptr, config::processorPrices(2)}, {});
  ASSERT_TRUE(space.ok());
  const tree::KvTree one = test::levelTree({1, 20}, {4000, 30}), other = test::levelTree({64}, {500});
  const plan::VariantFacts facts = plan::VariantFacts::of(variant());
  PlanModel model(*space, facts, {&one, &other}, 2);
  for (std::size_t at : {0U, 150U, 300U}) {
    const space::Point point = space->points()[at];
    const config::Config config = space->configOf(point);
    double product = 1;
    for (const tree::KvTree *tree : {&one, &other}) {
      const auto plan = plan::makePlan(*tree, facts, config, 2);
      ASSERT_TRUE(plan.ok());
      plan::CostModel cost;
      config::Config machine = config; // by the machine's prices, whatever the plan was made by
      machine.cost = space->cost();
      cost.set(facts, machine, 2);
      product *= cost.estimate(*plan).microseconds;
    }
    EXPECT_NEAR(*model.microseconds(point), std::sqrt(product), 1e-6 * std::sqrt(product));
  }
}

TEST(PlanModelTest, FewerBlocksAreSlower) {
  // Two stages leave room for three blocks on a multiprocessor, five for one.
  const auto space = space::makeSpace(variant(), {target::findTarget("sm_90a"), config::CostCoefficients()},
                                      {{"shape", {"sm80"}},
                                       {"tile_q", {"16"}},
                                       {"tile_kv", {"64"}},
                                       {"warps", {"4"}},
                                       {"chunk_tokens", {"256"}},
                                       {"partition", {"union"}}});
  ASSERT_TRUE(space.ok());
  const tree::KvTree tree = test::levelTree({1, 200}, {1000, 600});
  PlanModel model(*space, plan::VariantFacts::of(variant()), {&tree}, 132);
  const std::vector<space::Point> points = space->points();
  ASSERT_EQ(space->configOf(points.front()).phases[0].stages, 2);
  ASSERT_EQ(space->configOf(points.back()).phases[0].stages, 5);
  EXPECT_LT(*model.microseconds(points.front()), *model.microseconds(points.back()));
}

TEST(PlanModelTest, WhatCannotBePlannedHasNoTime) {
  const auto space = space::makeSpace(variant(), {nullptr, config::processorPrices(2)}, {});
  ASSERT_TRUE(space.ok());
  const tree::KvTree tree = test::levelTree({1, 4}, {64, 8});
  PlanModel model(*space, {64, 1, spec::Tensors::alike(128)}, {&tree}, 2); // a query of 64 rows
  int planned = 0, unplanned = 0;
  for (const space::Point &point : space->points())
    (model.microseconds(point) ? planned : unplanned)++;
  EXPECT_GT(planned, 0);
  EXPECT_GT(unplanned, 0); // tiles of 16 and 32 rows
}

} // namespace
} // namespace deft::search
