#include "runtime/plan/Forms.h"

#include "tests/unit/runtime/plan/PlanTesting.h"

#include <random>

namespace deft::plan {
namespace {

using tree::ExpandedNode;
using tree::KvTree;

/// Some nodes of a tree, one after the other in a cache of their own.
std::vector<ExpandedNode> someNodes(const KvTree &tree, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<ExpandedNode> nodes;
  int location = 5;
  for (int node = tree.firstRoot(); node >= 0; node = tree.nextInPreorder(node))
    if (random() % 3 == 0) {
      const int tokens = tree.nodes()[static_cast<std::size_t>(node)].tokens;
      nodes.push_back({node, tokens, location});
      location += tokens + static_cast<int>(random() % 20);
    }
  return nodes;
}

std::int64_t pairsIn(const Plan &plan) {
  std::int64_t pairs = 0;
  for (const abi::Run &run : plan.runs)
    for (int q = run.queryBegin; q < run.queryEnd; ++q)
      pairs += run.slope == 0 ? run.tokens : std::min(run.tokens, q - run.queryBegin + 1);
  return pairs;
}

class FormPlans : public testing::TestWithParam<spec::Partition> {};

TEST_P(FormPlans, ReadEachNodeInOneForm) {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const KvTree tree = placed(seed % 2 == 0 ? test::randomForest(seed) : test::causalForest(seed));
    const std::vector<ExpandedNode> chosen = someNodes(tree, seed);
    const config::Config config = makeConfig(seed % 3 == 1 ? 64 : 0, {64, 16}, GetParam());
    std::int64_t pairs = 0, all = 0;
    for (const bool isExpanded : {false, true}) {
      VariantFacts facts{isExpanded ? 1 : 4, isExpanded ? 4 : 1};
      const KvTree own = treeOfForm(tree, chosen, isExpanded);
      const Plan plan = mustVerify(own, facts, config, 8);
      pairs += pairsIn(plan);
      for (const abi::Run &run : plan.runs) {
        const auto lies = [&](const ExpandedNode &node) {
          return node.location <= run.location && run.location + run.tokens <= node.location + node.tokens;
        };
        EXPECT_TRUE(!isExpanded || std::any_of(chosen.begin(), chosen.end(), lies));
      }
    }
    for (const tree::Query &query : tree.queries())
      all += tree.pathTokens(query);
    ASSERT_EQ(pairs, all);
  }
}

INSTANTIATE_TEST_SUITE_P(EveryPartition, FormPlans, testing::ValuesIn(kAllPartitions), partitionTestName);

TEST(FormsTest, AChosenLeafDoesNotGrowInPlace) {
  KvTree tree = placed(test::levelTree({1, 3}, {32, 16}));
  const std::vector<ExpandedNode> chosen = {{2, 16, 0}};
  for (const bool isExpanded : {false, true}) {
    KvTree own = treeOfForm(tree, chosen, isExpanded);
    Plan plan = mustPlan(own, VariantFacts{1, 1}, makeConfig(0));
    stopGrowth(chosen, plan);
    for (const Plan::Leaf &leaf : plan.leaves)
      EXPECT_EQ(leaf.canGrow == 0, leaf.node == 2);
    ASSERT_TRUE(own.append(1, 1));
    EXPECT_EQ(advance(own, plan), Advance::Done);
    ASSERT_TRUE(own.append(2, 1));
    EXPECT_EQ(advance(own, plan), Advance::NeedsNewPlan);
  }
}

/// DeepSeek V3's numbers, and prices like a H200's: 660 TFLOP/s, 4,700 GB/s.
struct Runs {
  VariantFacts latent{64, 2}, heads{1, 128};
  config::Config config = makeConfig(0, {64});

  Runs() {
    latent.headGroups = 2;
    latent.tensors = spec::Tensors::alike(512);
    latent.tensors.q.dim = latent.tensors.k.dim = 576;
    latent.tensors.valueInKey = true;
    heads.tensors = spec::Tensors::alike(128);
    heads.tensors.q.dim = heads.tensors.k.dim = 192;
    config.cost.cacheGBs = config.cost.againGBs = config.cost.partialGBs = 4700;
    config.cost.blockGflops = 5000;
    config.cost.stepUs = config.cost.itemUs = config.cost.runUs = 0;
    config.cost.launchUs = 3;
    config.cost.mergeUs = 2;
  }
  std::vector<int> chosen(const KvTree &tree, const std::vector<ExpandedNode> &nodes) const {
    return cheaperExpanded(tree, nodes, {latent, config, config.cost, 132},
                           {heads, config, config.cost, 132});
  }
};

TEST(FormsTest, ManyReadersAreCheaperExpandedAndFewAsLatents) {
  const Runs runs;
  EXPECT_EQ(runs.chosen(placed(test::levelTree({1, 256}, {8192, 64})), {{0, 8192, 0}}), std::vector{0});
  EXPECT_EQ(runs.chosen(placed(test::levelTree({1, 16}, {8192, 64})), {{0, 8192, 0}}), std::vector<int>{});
  // The prompt has 256 readers, each of its four branches 64, each leaf one.
  const KvTree tree = placed(test::levelTree({1, 4, 64}, {8192, 8192, 64}));
  std::vector<ExpandedNode> nodes;
  for (int node = tree.firstRoot(), at = 0; node >= 0; node = tree.nextInPreorder(node)) {
    const int tokens = tree.nodes()[static_cast<std::size_t>(node)].tokens;
    nodes.push_back({node, tokens, at});
    at += tokens;
  }
  for (const int i : runs.chosen(tree, nodes))
    EXPECT_EQ(nodes[static_cast<std::size_t>(i)].tokens, 8192);
  EXPECT_EQ(runs.chosen(tree, {}), std::vector<int>{});
}

TEST(FormsTest, WhatSavesLessThanASecondRunIsReadAsLatents) {
  const Runs runs;
  EXPECT_EQ(runs.chosen(placed(test::levelTree({1, 128}, {4096, 64})), {{0, 4096, 0}}), std::vector{0});
  EXPECT_EQ(runs.chosen(placed(test::levelTree({1, 128}, {64, 64})), {{0, 64, 0}}), std::vector<int>{});
}

} // namespace
} // namespace deft::plan
