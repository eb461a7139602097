/// Every partition on every kind of tree: each query sees each token of its path once.

#include "tests/unit/runtime/plan/PlanTesting.h"

#include <random>

namespace deft::plan {
namespace {

using tree::KvTree;

class Forests : public testing::TestWithParam<spec::Partition> {
protected:
  /// Chunks below, at and above nodes, one phase and three, orders, page sizes and families, by turns.
  void verifyPlans(const KvTree &unplaced, std::uint64_t turn) {
    const KvTree tree = placed(unplaced);
    const int ratios[] = {1, 2, 3, 4, 5, 6, 7, 8, 16};
    const int chunks[] = {0, 1, 16, 48, 128, 4096};
    const std::vector<int> tiles[] = {{16}, {64}, {64, 16}, {128, 64, 16}};
    const int pageSizes[] = {0, 16, 1, 64, 24, 7, 32};
    VariantFacts facts{ratios[turn % 9], 2};
    facts.pageSize = pageSizes[turn % 7];
    config::Config config = makeConfig(chunks[turn / 9 % 6], tiles[turn / 54 % 4], GetParam());
    config.order = config::kAllOrders[turn % 5 % 3];
    const int tileKvs[] = {64, 16, 128};
    for (std::size_t p = 0; p < config.phases.size(); ++p) {
      config.phases[p].tileKv = tileKvs[(turn + p) % 3];
      if ((turn / 3 + p) % 2 == 0)
        config.phases[p].family = config::Family::Sm90;
    }
    const auto made = planner_.make(tree, facts, config, 8, plan_);
    ASSERT_TRUE(made) << made.error().message;
    const auto verified = verify(plan_, tree, facts, config);
    ASSERT_TRUE(verified) << verified.error().message << " (ratio " << facts.ratio << ", chunk "
                          << config.chunkTokens << ", largest tile_q " << config.phases[0].tileQ << ")";
  }

  Planner planner_; ///< one for all: nothing of a plan may leak into the next
  Plan plan_;
};

TEST_P(Forests, EdgeTreesAreCoveredExactlyOnce) {
  for (const auto &[name, tree] : test::edgeTrees()) {
    SCOPED_TRACE(name);
    for (std::uint64_t turn = 0; turn < 9 * 6 * 4; ++turn)
      ASSERT_NO_FATAL_FAILURE(verifyPlans(tree, turn));
  }
}

TEST_P(Forests, RandomForestsAreCoveredExactlyOnce) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ASSERT_NO_FATAL_FAILURE(verifyPlans(test::randomForest(seed), seed));
  }
}

TEST_P(Forests, CausalStretchesAreCoveredExactlyOnce) {
  int sloped = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ASSERT_NO_FATAL_FAILURE(verifyPlans(test::causalForest(seed), seed));
    sloped +=
        std::any_of(plan_.runs.begin(), plan_.runs.end(), [](const abi::Run &run) { return run.slope != 0; });
  }
  if (GetParam() == spec::Partition::Query) // a query has no slope
    EXPECT_EQ(sloped, 0);
  else
    EXPECT_GT(sloped, 300);
}

TEST_P(Forests, LargeForestsAreCoveredExactlyOnce) {
  for (std::uint64_t seed = 5000; seed < 5006; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ASSERT_NO_FATAL_FAILURE(verifyPlans(test::randomForest(seed, {2000, 300, 1500}), 54 * seed + 3));
    ASSERT_NO_FATAL_FAILURE(verifyPlans(test::causalForest(seed, {50, 3000, 100}), 54 * seed + 3));
  }
}

/// Forests that lived: nodes grown, forked, split and pruned, so that numbers of parents and children are in
/// no order.
TEST_P(Forests, ForestsThatLivedAreCoveredExactlyOnce) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    KvTree tree = test::randomForest(seed);
    for (int step = 0; step < 30; ++step) {
      const int node = static_cast<int>(random() % tree.nodes().size());
      const int tokens = static_cast<int>(random() % 20);
      switch (random() % 5) { // many of these are refused, which is as well
      case 0:
        (void)tree.append(node, tokens);
        break;
      case 1:
        (void)tree.fork(node, tokens);
        break;
      case 2:
        if (tree.aliveNodes() > 4)
          (void)tree.prune(node);
        break;
      case 3:
        (void)tree.addNode(node, tokens);
        break;
      default:
        (void)tree.addQuery(node);
      }
    }
    ASSERT_NO_FATAL_FAILURE(verifyPlans(tree, seed));
  }
}

TEST_P(Forests, DeepChainsNeedNoStack) {
  KvTree tree;
  int last = -1;
  for (int i = 0; i < 20000; ++i)
    last = tree.addNode(last, i % 3).value();
  for (int node : {last, last - 1, last / 2, 5})
    (void)tree.addQuery(node);
  ASSERT_NO_FATAL_FAILURE(verifyPlans(tree, 3));
}

TEST_P(Forests, WideFansAndTokenTrees) {
  KvTree fan, speculation;
  const int root = fan.addNode(-1, 700).value();
  for (int i = 0; i < 1500; ++i)
    (void)fan.addQuery(fan.addNode(root, i % 40).value());
  std::vector<int> nodes = {speculation.addNode(-1, 500).value()};
  for (int i = 1; i < 256; ++i) {
    nodes.push_back(speculation.addNode(nodes[static_cast<std::size_t>(i / 4)], 1).value());
    (void)speculation.addQuery(nodes.back());
  }
  for (std::uint64_t turn = 0; turn < 9 * 6 * 4; turn += 13) {
    ASSERT_NO_FATAL_FAILURE(verifyPlans(fan, turn));
    ASSERT_NO_FATAL_FAILURE(verifyPlans(speculation, turn));
  }
}

INSTANTIATE_TEST_SUITE_P(EveryPartition, Forests, testing::ValuesIn(kAllPartitions), partitionTestName);

} // namespace
} // namespace deft::plan
