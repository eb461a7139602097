/// Plans of every partition, executed: outputs and lse against the oracle, and invariant plans bit by bit.

#include "compiler/config/ConfigJson.h"
#include "runtime/exec/RandomInputs.h"
#include "runtime/exec/cpu/CpuExecutor.h"
#include "runtime/reference/Check.h"
#include "runtime/reference/Counting.h"
#include "tests/support/ScalarKernel.h"
#include "tests/unit/runtime/plan/PlanTesting.h"

#include <random>

namespace deft::plan {
namespace {

using Kernel = test::ScalarKernel<6, 2, 8>;
using tree::KvTree;

struct Problem {
  KvTree tree;
  exec::Inputs inputs;
};

Problem makeProblem(KvTree tree, std::uint64_t seed) {
  const spec::Variant variant = Kernel::variant();
  const auto placement = tree::placeInCache(
      tree, {.pageSize = variant.cache.pageSize, .order = tree::PlacementOrder::Scattered, .seed = seed});
  EXPECT_TRUE(placement);
  exec::Inputs inputs = exec::makeRandomInputs(variant, tree, *placement, {}, seed);
  return {std::move(tree), std::move(inputs)};
}

exec::Outputs execute(const Problem &problem, const Plan &plan) {
  exec::Outputs outputs;
  const auto ran = exec::runCpu(Kernel::kernel(), Kernel::variant(), plan, problem.inputs, outputs, 1);
  EXPECT_TRUE(ran) << ran.error().message;
  return outputs;
}

class Results : public testing::TestWithParam<spec::Partition> {
protected:
  void expectRight(const KvTree &tree, std::uint64_t seed) {
    const Problem problem = makeProblem(tree, seed);
    const spec::Variant variant = Kernel::variant();
    config::Config config =
        makeConfig(seed % 3 == 0   ? 0
                   : seed % 3 == 1 ? 16
                                   : 64,
                   seed % 2 ? std::vector<int>{16} : std::vector<int>{64, 16}, GetParam());
    config.order = config::kAllOrders[seed % 5 % 3];
    const Plan plan = mustPlan(problem.tree, VariantFacts::of(variant), config, 8);
    const auto report = reference::check(variant, problem.tree, problem.inputs, execute(problem, plan));
    ASSERT_TRUE(report.passed()) << reference::explainFailure(report);
    ASSERT_TRUE(report.hasLse);
  }
};

TEST_P(Results, EdgeTreesMatchTheOracle) {
  for (const auto &[name, tree] : test::edgeTrees()) {
    SCOPED_TRACE(name);
    for (std::uint64_t seed = 0; seed < 6; ++seed)
      ASSERT_NO_FATAL_FAILURE(expectRight(tree, seed));
  }
}

TEST_P(Results, RandomForestsMatchTheOracle) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ASSERT_NO_FATAL_FAILURE(expectRight(test::randomForest(seed), seed));
    ASSERT_NO_FATAL_FAILURE(expectRight(test::causalForest(seed), seed));
  }
}

INSTANTIATE_TEST_SUITE_P(EveryPartition, Results, testing::ValuesIn(kAllPartitions), partitionTestName);

/// Requests that come and go beside the first ones: on nodes of their own, below the nodes that are there,
/// and with queries on those nodes, ending anywhere.
void addOthers(KvTree &tree, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const int nodes = static_cast<int>(tree.nodes().size());
  for (int i = 0; i < 12; ++i) {
    const int parent = below(nodes + 1) - 1;
    const int node = tree.addNode(parent, below(60)).value();
    (void)tree.addQuery(node);
  }
  for (int i = 0; i < 12; ++i) {
    const int node = below(nodes);
    (void)tree.addQuery(node, below(tree.nodes()[node].tokens + 1));
  }
}

TEST(InvariantPlanTest, OtherRequestsDoNotChangeABit) {
  int compared = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const VariantFacts facts = VariantFacts::of(Kernel::variant());
    config::Config config = makeConfig(32, {16}, spec::Partition::Node);
    config.order = config::Order::Alternate; // is not taken: which items are turned depends on all
    Planner planner({.isInvariant = true});
    const test::ForestLimits limits{24, 120, 12};
    const KvTree alone = seed % 2 == 0 ? test::randomForest(seed, limits) : test::causalForest(seed, limits);
    const std::size_t queries = alone.queries().size();
    exec::Outputs first;
    for (std::uint64_t others = 0; others < 4; ++others) {
      KvTree tree = alone;
      if (others > 0)
        addOthers(tree, 100 * seed + others);
      // Where the tokens lie differs; their values follow from node and place in it.
      Problem problem = makeProblem(tree, seed);
      Plan plan;
      const auto made = planner.make(problem.tree, facts, config, 1 + static_cast<int>(others), plan);
      ASSERT_TRUE(made) << made.error().message;
      const auto verified = verify(plan, problem.tree, facts, config);
      ASSERT_TRUE(verified) << verified.error().message;
      exec::Outputs outputs = execute(problem, plan);
      outputs.out.resize(queries * 6 * 8);
      outputs.lse.resize(queries * 6);
      if (others == 0)
        first = outputs;
      ASSERT_EQ(outputs.out, first.out);
      ASSERT_EQ(outputs.lse, first.lse);
      compared += static_cast<int>(queries);
    }
  }
  EXPECT_GT(compared, 5000);
}

/// Plans that are not invariant: if their bits stayed, too, the test of those that are would prove nothing.
TEST(InvariantPlanTest, OtherPlansDoChangeBits) {
  int changed = 0;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const VariantFacts facts = VariantFacts::of(Kernel::variant());
    const config::Config config = makeConfig(0, {64, 16});
    const KvTree alone = test::randomForest(seed, {24, 120, 12});
    KvTree tree = alone;
    addOthers(tree, seed);
    const Problem a = makeProblem(alone, seed), b = makeProblem(tree, seed);
    exec::Outputs one = execute(a, mustPlan(a.tree, facts, config, 8));
    exec::Outputs other = execute(b, mustPlan(b.tree, facts, config, 8));
    other.lse.resize(one.lse.size());
    changed += one.lse != other.lse;
  }
  EXPECT_GT(changed, 5);
}

TEST(InvariantPlanTest, WhatDependsOnTheTreeIsRefused) {
  const KvTree tree = test::levelTree({1, 2}, {50, 10});
  Planner planner({.isInvariant = true});
  Plan plan;
  const auto messageFor = [&](const config::Config &config) {
    const auto made = planner.make(tree, {1, 1}, config, 4, plan);
    return made ? std::string() : made.error().message;
  };
  EXPECT_EQ(messageFor(makeConfig(32, {16}, spec::Partition::Node)), "");
  EXPECT_EQ(messageFor(makeConfig(32, {16}, spec::Partition::Union)),
            "an invariant plan needs partition `node`, not `union`");
  EXPECT_EQ(messageFor(makeConfig(32, {64, 16}, spec::Partition::Node)),
            "an invariant plan needs one phase, not 2");
  EXPECT_EQ(messageFor(makeConfig(0, {16}, spec::Partition::Node)),
            "an invariant plan needs a chunk that does not depend on the tree");
  config::Config sm90 = makeConfig(32, {128}, spec::Partition::Node);
  sm90.phases[0].family = config::Family::Sm90;
  EXPECT_EQ(messageFor(sm90),
            "an invariant plan cannot use family sm90, which sums in another order where an "
            "item has more rows");
}

/// Runs that lose their last token, or begin one token too early, in a plan over 30,000 tokens of 32 heads:
/// seen whichever run it is, also where random values do not tell.
TEST(CountingTest, OneTokenOfAPlanOverManyIsMissed) {
  using Llama = test::ScalarKernel<32, 8, 64>;
  const spec::Variant variant = Llama::variant();
  KvTree tree = test::levelTree({1, 2}, {29'500, 500});
  const auto placement = tree::placeInCache(
      tree, {.pageSize = variant.cache.pageSize, .order = tree::PlacementOrder::Scattered});
  ASSERT_TRUE(placement);
  const exec::Inputs inputs = exec::makeRandomInputs(variant, tree, *placement, {}, 1);
  const Plan right =
      mustPlan(tree, VariantFacts::of(variant), makeConfig(4096, {64}, spec::Partition::Node), 8);
  reference::Counting counting(variant, tree, inputs, {2});
  counting.keepWeights();
  const auto wrongRows = [&](const Plan &plan) {
    const auto ran = reference::runPasses(counting, [&](exec::Inputs &made, exec::Outputs &outputs) {
      return exec::runCpu(Llama::kernel(), variant, plan, made, outputs, 2);
    });
    EXPECT_TRUE(ran) << ran.error().message;
    return counting.judge().wrongRows;
  };
  EXPECT_EQ(wrongRows(right), 0);
  for (const std::size_t item : {std::size_t{0}, right.items.size() - 1}) {
    Plan lost = right, twice = right;
    const abi::Item &of = right.items[item];
    const auto first = static_cast<std::size_t>(of.runBegin),
               last = static_cast<std::size_t>(of.runBegin + of.runCount - 1);
    --lost.items[item].tokens;
    --lost.runs.toChange()[last].tokens;
    const int losers = right.runs[last].queryEnd - right.runs[last].queryBegin;
    EXPECT_EQ(wrongRows(lost), 32 * losers) << "item " << item;
    if (right.runs[first].position > 0) { // the token before it is another item's, too
      --twice.runs.toChange()[first].location;
      EXPECT_GT(wrongRows(twice), 0) << "item " << item;
    }
  }
}

} // namespace
} // namespace deft::plan
