#include "runtime/plan/BeamPlanner.h"

#include "runtime/exec/RandomInputs.h"
#include "runtime/exec/cpu/CpuExecutor.h"
#include "runtime/reference/Counting.h"
#include "tests/support/ScalarKernel.h"
#include "tests/unit/runtime/plan/PlanTesting.h"

#include <memory>
#include <numeric>
#include <random>

namespace deft::plan {
namespace {

using tree::BeamTree;

constexpr int kFirstPage = 64;

/// Searches in which beams go on from others at random, and are now more, now fewer.
class Searches {
public:
  Searches(std::uint32_t seed, int beams, int pageSize = 1)
      : random_(seed), most_(beams), beams_(BeamTree::make({pageSize, kFirstPage, 16 * beams}).value()) {
    std::vector<BeamTree::History> histories{{{0, 40}}};
    if (seed % 3 == 1)
      histories.push_back({{0, 16}, {48, 5}});
    if (seed % 3 == 2)
      histories[0] = {{0, 33}, {40, 20}};
    EXPECT_TRUE(beams_.start(histories));
  }

  void step() {
    const auto below = [&](int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); };
    std::vector<int> parents(static_cast<std::size_t>(most_ / 2 + below(most_ - most_ / 2) + 1));
    for (int &parent : parents)
      parent = below(beams_.beams());
    ASSERT_TRUE(beams_.advance(parents));
  }
  const BeamTree &beams() const { return beams_; }

private:
  std::mt19937 random_;
  int most_;
  BeamTree beams_;
};

/// The plan of the beams, which is right for the tree that they are.
Plan mustVerify(BeamPlanner &planner, const BeamTree &beams, const VariantFacts &facts,
                const config::Config &config, int blocks) {
  Plan plan;
  const auto made = planner.make(beams, facts, config, blocks, plan);
  EXPECT_TRUE(made) << made.error().message;
  EXPECT_EQ(plan.generation, beams.generation());
  const tree::KvTree tree = beams.toTree();
  Plan ofTree = plan;
  ofTree.generation = tree.generation();
  const auto verified = verify(ofTree, tree, facts, config);
  EXPECT_TRUE(verified) << verified.error().message;
  return plan;
}

TEST(BeamPlannerTest, EachBeamReadsItsPathOnce) {
  int direct = 0, others = 0;
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const int pageSize = std::vector{1, 16, 32}[seed % 4 % 3];
    Searches searches(seed, seed % 5 == 0 ? 20 : 150, pageSize);
    const VariantFacts facts{.ratio = 1 << seed % 3, .kvHeads = 8, .pageSize = pageSize};
    config::Config config = makeConfig(0, seed % 2 ? std::vector{64, 16} : std::vector{64},
                                       seed % 7 ? spec::Partition::Auto : spec::Partition::Union);
    config.order = config::kAllOrders[seed % 5 % 3];
    if (seed % 2 == 0)
      config.phases = {
          {.name = "tiles", .family = config::Family::Sm90, .tileQ = 64, .stages = 2, .warps = 8}};
    BeamPlanner planner;
    for (int step = 0; step < 6; ++step) {
      searches.step();
      mustVerify(planner, searches.beams(), facts, config, seed % 6 ? 24 : 400);
      ++(planner.wasDirect() ? direct : others);
    }
  }
  EXPECT_GT(direct, 150);
  EXPECT_GT(others, 50);
}

TEST(BeamPlannerTest, WhatIsNotForTheDirectWayTakesThatOfAnyTree) {
  Searches searches(0, 150);
  searches.step();
  const VariantFacts facts{2, 8};
  const auto isDirect = [&](const config::Config &config, const VariantFacts &facts, int blocks) {
    BeamPlanner planner;
    mustVerify(planner, searches.beams(), facts, config, blocks);
    return planner.wasDirect();
  };
  const config::Config config = makeConfig(0, {64});
  EXPECT_TRUE(isDirect(config, facts, 24));
  EXPECT_FALSE(isDirect(config, facts, 400)); // some blocks would have nothing to do
  EXPECT_FALSE(isDirect(makeConfig(64, {64}), facts, 24));
  config::Config ofProcessor = config;
  ofProcessor.phases[0].family = config::Family::Cpu; // for which wide tiles may be dear
  EXPECT_FALSE(isDirect(ofProcessor, facts, 24));
  EXPECT_FALSE(isDirect(makeConfig(0, {64}, spec::Partition::Node), facts, 24));
}

/// Beams of one search are cut into tiles that differ by one at most, and no tile has two searches.
TEST(BeamPlannerTest, TilesAreEvenAndOfOneSearch) {
  BeamTree beams = BeamTree::make({1, kFirstPage, 400}).value();
  const std::vector<BeamTree::History> histories{{{0, 40}}, {{40, 20}}};
  ASSERT_TRUE(beams.start(histories));
  std::vector<int> parents(100, 0);
  std::fill(parents.begin() + 65, parents.end(), 1);
  ASSERT_TRUE(beams.advance(parents));
  BeamPlanner planner;
  const Plan plan = mustVerify(planner, beams, {2, 8}, makeConfig(0, {64}), 24);
  std::vector<std::pair<int, int>> tiles;
  for (const abi::Item &item : plan.items)
    tiles.emplace_back(item.queryBegin, item.queryCount);
  std::sort(tiles.begin(), tiles.end());
  EXPECT_THAT(tiles, testing::ElementsAre(std::pair(0, 21), std::pair(21, 22), std::pair(43, 22),
                                          std::pair(65, 17), std::pair(82, 18)));
  EXPECT_TRUE(plan.mergeQuery.empty());
}

TEST(BeamPlannerTest, RunsStandWhereTheUploadBegins) {
  Searches searches(0, 150, 16);
  searches.step();
  const auto memory = std::make_shared<std::vector<abi::Run>>(4000);
  for (const bool isInOrder : {true, false}) {
    config::Config config = makeConfig(0, {64});
    config.order = isInOrder ? config::Order::FromRoot : config::Order::Alternate;
    Plan plan;
    plan.runs.lend({memory, *memory});
    BeamPlanner planner;
    ASSERT_TRUE(planner.make(searches.beams(), {2, 8}, config, 24, plan));
    ASSERT_TRUE(planner.wasDirect());
    if (isInOrder) {
      EXPECT_EQ(plan.runs.data(), memory->data());
    }
  }
}

/// Wide searches are what the direct way is for: its plan is no dearer than the best that there is.
TEST(BeamPlannerTest, WideSearchesCostWhatTheBestPlanCosts) {
  for (const int history : {500, 8000}) {
    BeamTree beams = BeamTree::make({1, 8000, 30'000}).value();
    const BeamTree::History one{{0, history}};
    ASSERT_TRUE(beams.start({&one, 1}));
    std::mt19937 random(1);
    std::vector<int> parents(2000, 0);
    for (int step = 0; step < 3; ++step) {
      ASSERT_TRUE(beams.advance(parents));
      for (int &parent : parents)
        parent = static_cast<int>(random() % 2000);
    }
    const VariantFacts facts{2, 8};
    config::Config config = makeConfig(0, {128}, spec::Partition::Auto);
    config.phases = {
        {.name = "tiles", .family = config::Family::Sm90, .tileQ = 128, .stages = 4, .warps = 12}};
    BeamPlanner planner;
    Plan plan;
    ASSERT_TRUE(planner.make(beams, facts, config, 132, plan));
    ASSERT_TRUE(planner.wasDirect());
    const Plan best = mustPlan(beams.toTree(), facts, config, 132);
    CostModel model;
    model.set(facts, config, 132);
    EXPECT_LT(rankOf(model.estimate(plan).microseconds, config.cost, plan),
              1.02 * rankOf(model.estimate(best).microseconds, config.cost, best));
  }
}

/// Every token of every row, told by counting, for beams that change parents, end and become more.
TEST(BeamPlannerTest, EachRowCountsItsTokens) {
  using Kernel = test::ScalarKernel<4, 2, 8>;
  const spec::Variant variant = Kernel::variant();
  const int pageSize = variant.cache.pageSize;
  for (std::uint32_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Searches searches(seed, 60, seed % 2 ? pageSize : 1);
    BeamPlanner planner;
    for (int step = 0; step < 4; ++step) {
      searches.step();
      const BeamTree &beams = searches.beams();
      const tree::KvTree tree = beams.toTree();
      const tree::BeamRoom &room = beams.room();
      tree::CachePlacement placement{
          pageSize, (room.firstPage + room.pages) * room.pageSize / pageSize + 1, {}};
      placement.pageTable.resize(static_cast<std::size_t>(placement.poolPages));
      std::iota(placement.pageTable.begin(), placement.pageTable.end(), 0);
      std::shuffle(placement.pageTable.begin(), placement.pageTable.end(), std::mt19937(seed));
      const exec::Inputs inputs = exec::makeRandomInputs(variant, tree, placement, {}, seed);
      Plan plan;
      ASSERT_TRUE(planner.make(beams, VariantFacts::of(variant), makeConfig(0, {64}), 2, plan));
      EXPECT_TRUE(planner.wasDirect());
      reference::Counting counting(variant, tree, inputs);
      const auto ran = reference::runPasses(counting, [&](exec::Inputs &made, exec::Outputs &outputs) {
        return exec::runCpu(Kernel::kernel(), variant, plan, made, outputs, 1);
      });
      ASSERT_TRUE(ran) << ran.error().message;
      const auto report = counting.judge();
      EXPECT_TRUE(report.passed()) << report.fault;
      EXPECT_GT(report.pairs, 0);
    }
  }
}

} // namespace
} // namespace deft::plan
