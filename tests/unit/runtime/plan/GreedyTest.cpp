#include "runtime/plan/Greedy.h"
#include "runtime/plan/CostModel.h"
#include "runtime/plan/Items.h"
#include "runtime/plan/Planner.h"
#include "runtime/plan/Verify.h"
#include "runtime/tree/CachePlacement.h"
#include "tests/support/Forest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

namespace deft::plan {
namespace {

using tree::KvTree;

/// One random problem: a small forest, a variant and a machine.
struct Problem {
  KvTree tree;
  VariantFacts facts;
  config::Config config;
  int blocks = 264;
};

class Random {
public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  int below(int bound) { return static_cast<int>(engine_() % static_cast<std::uint64_t>(bound)); }
  template <typename Value> Value oneOf(std::initializer_list<Value> values) {
    return values.begin()[below(static_cast<int>(values.size()))];
  }
  /// Between 1 and `most`, small values as likely as large ones.
  int logUniform(int most) {
    const double exponent = static_cast<double>(below(1 << 20)) / (1 << 20);
    return static_cast<int>(std::pow(static_cast<double>(most), exponent));
  }

private:
  std::mt19937_64 engine_;
};

/// Forests of every shape that prefixes take: chains, fans, wide levels, token trees, long prompts.
Problem makeProblem(std::uint64_t seed, int mostNodes) {
  Random random(seed);
  Problem problem;
  problem.facts.ratio = random.oneOf({1, 1, 4, 8, 3});
  problem.facts.kvHeads = random.oneOf({1, 8, 32});
  problem.blocks = random.oneOf({16, 132, 264});
  problem.config.chunkTokens = random.oneOf({0, 0, 256, 1024});
  for (int tileQ : random.oneOf<std::vector<int>>({{64, 16}, {16}, {128, 64, 16}, {64}})) {
    config::PhaseConfig phase;
    phase.tileQ = tileQ;
    if (!problem.config.phases.empty())
      problem.config.phases.back().rowsAbove = tileQ;
    problem.config.phases.push_back(phase);
  }
  const int nodes = 2 + random.below(mostNodes - 1);
  const int shape = random.below(4); // any parent, a recent one, the last one mostly, the first mostly
  const int mostTokens = random.oneOf({4, 64, 512, 4000});
  const int mostQueries = random.oneOf({1, 4, 40, 200});
  for (int i = 0; i < nodes; ++i) {
    int parent = random.below(i + 1) - 1;
    if (i > 0 && shape == 1)
      parent = std::max(parent, i - 1 - random.below(std::min(i, 3)));
    if (i > 0 && shape == 2 && random.below(4) > 0)
      parent = i - 1;
    if (i > 0 && shape == 3 && random.below(3) > 0)
      parent = 0;
    const bool isLong = parent < 0 && random.below(2) == 0;
    EXPECT_TRUE(
        problem.tree.addNode(parent, isLong ? random.logUniform(4000) : random.logUniform(mostTokens)));
  }
  const bool everyNode = random.below(4) == 0;
  for (int i = 0; i < nodes; ++i) {
    const bool isLeaf = problem.tree.nodes()[i].firstChild < 0;
    const int count = everyNode ? 1 : isLeaf || random.below(6) == 0 ? random.logUniform(mostQueries) : 0;
    for (int q = 0; q < count; ++q)
      EXPECT_TRUE(problem.tree.addQuery(i));
  }
  EXPECT_TRUE(tree::placeInCache(problem.tree, {}));
  return problem;
}

/// Everything from an assignment to its price, by the planner's own parts.
class Pricer {
public:
  explicit Pricer(const Problem &problem) : problem_(problem) {
    model_.set(problem.facts, problem.config, problem.blocks);
  }

  double priceGreedy() {
    view_.build(problem_.tree);
    greedy_.assign(view_, model_, problem_.config.chunkTokens);
    return price();
  }
  /// `isJoined`: of each node.
  double priceOf(const std::vector<char> &isJoined) {
    view_.build(problem_.tree);
    joined_.clear();
    for (int p = 0; p < view_.placeCount(); ++p)
      if (isJoined[view_.places[p].node] != 0)
        joined_.push_back(p);
    greedy_.assign(view_, joined_);
    return price();
  }
  support::Result<void> verify() {
    plan_.generation = problem_.tree.generation();
    plan_.countTable();
    PhaseSorter().sort(problem_.config, problem_.facts.ratio, cutter_.longest(), plan_);
    return plan::verify(plan_, problem_.tree, problem_.facts, problem_.config);
  }
  const Plan &plan() const { return plan_; }
  const CostModel &model() const { return model_; }

private:
  double price() {
    const int chunk = problem_.config.chunkTokens;
    tiles_.clear();
    greedy_.makeTiles(view_, model_.queriesPerTile(), scratch_, tiles_);
    EXPECT_TRUE(cutter_.cut(view_, tiles_, chunk > 0 ? chunk : 1 << 30, true, plan_));
    plan_.callerIndex = view_.callerIndex;
    plan_.queryPos = view_.queryPos;
    plan_.readTokens = view_.readTokens;
    return model_.estimate(plan_).workUs;
  }

  const Problem &problem_;
  CostModel model_;
  TreeView view_;
  std::vector<int> joined_;
  TileList tiles_;
  PartitionScratch scratch_;
  GreedyPartition greedy_;
  ItemCutter cutter_;
  Plan plan_;
};

/// The least price over all assignments of the edges.
double leastPrice(const Problem &problem, Pricer &pricer) {
  std::vector<int> edges;
  for (int i = 0; i < static_cast<int>(problem.tree.nodes().size()); ++i)
    if (problem.tree.nodes()[i].parent >= 0)
      edges.push_back(i);
  double least = 1e300;
  std::vector<char> isJoined(problem.tree.nodes().size(), 0);
  for (unsigned bits = 0; bits < 1U << edges.size(); ++bits) {
    for (std::size_t e = 0; e < edges.size(); ++e)
      isJoined[edges[e]] = static_cast<char>(bits >> e & 1);
    least = std::min(least, pricer.priceOf(isJoined));
  }
  return least;
}

TEST(GreedyTest, NearTheOptimumOverAllEdgeAssignments) {
  constexpr int kForests = 6000;
  std::vector<double> excess;
  for (int seed = 0; seed < kForests; ++seed) {
    const Problem problem = makeProblem(static_cast<std::uint64_t>(seed), seed % 8 == 0 ? 13 : 9);
    if (problem.tree.queries().empty())
      continue;
    Pricer pricer(problem);
    const double greedy = pricer.priceGreedy();
    const double least = leastPrice(problem, pricer);
    ASSERT_GT(least, 0) << "seed " << seed;
    excess.push_back(greedy / least - 1);
    EXPECT_LE(excess.back(), 0.15) << "seed " << seed;
  }
  ASSERT_GT(excess.size(), kForests / 2);
  std::sort(excess.begin(), excess.end());
  EXPECT_LE(excess[excess.size() / 2], 0.05);
  EXPECT_LE(excess[excess.size() * 99 / 100], 0.05);
  RecordProperty("worst_permille", static_cast<int>(1000 * excess.back()));
}

/// The assignment is free of the planner's order, so every one of them must be a right plan.
TEST(GreedyTest, AnyAssignmentCoversEveryPathOnce) {
  for (int seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Problem problem = makeProblem(static_cast<std::uint64_t>(seed), 30);
    Pricer pricer(problem);
    Random random(static_cast<std::uint64_t>(seed) + 1);
    std::vector<char> isJoined;
    for (const tree::Node &node : problem.tree.nodes())
      isJoined.push_back(node.parent >= 0 && random.below(2) == 0);
    pricer.priceOf(isJoined);
    const auto verified = pricer.verify();
    ASSERT_TRUE(verified) << verified.error().message;
  }
}

/// A prompt, two branches of each kind: one row tile serves all of them, so nothing is worth reading twice.
TEST(GreedyTest, LongPromptIsReadOnce) {
  Problem problem;
  problem.facts = {4, 8};
  problem.config.phases.resize(1);
  problem.config.phases[0].tileQ = 64;
  ASSERT_TRUE(problem.tree.addNode(-1, 4000));
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(problem.tree.addNode(0, 200));
    ASSERT_TRUE(problem.tree.addQuery(i + 1));
  }
  Pricer pricer(problem);
  pricer.priceGreedy();
  EXPECT_EQ(pricer.plan().items.size(), 11U);
}

/// Where each branch fills row tiles of its own, reading the prompt with it costs nothing and saves partials.
TEST(GreedyTest, BranchesThatFillTilesTakeThePromptWithThem) {
  Problem problem;
  problem.facts = {4, 8};
  problem.config.phases.resize(1);
  problem.config.phases[0].tileQ = 64;
  ASSERT_TRUE(problem.tree.addNode(-1, 400));
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(problem.tree.addNode(0, 50));
    for (int q = 0; q < 16; ++q)
      ASSERT_TRUE(problem.tree.addQuery(i + 1));
  }
  Pricer pricer(problem);
  pricer.priceGreedy();
  EXPECT_EQ(pricer.plan().items.size(), 3U);
  EXPECT_EQ(pricer.plan().partialSlots, 0);
}

/// Longer than the table is wide: nodes of a token each, all of them in one item.
TEST(GreedyTest, DeepChainIsOneItem) {
  Problem problem;
  problem.config.phases.resize(1);
  for (int i = 0; i < 60; ++i)
    ASSERT_TRUE(problem.tree.addNode(i - 1, 1));
  ASSERT_TRUE(problem.tree.addQuery(59));
  Pricer pricer(problem);
  pricer.priceGreedy();
  EXPECT_EQ(pricer.plan().items.size(), 1U);
  EXPECT_EQ(pricer.plan().partialSlots, 0);
}

/// Roots have nothing above them: a forest's plan is its trees' plans.
TEST(GreedyTest, ForestCostsWhatItsTreesCost) {
  Problem one = makeProblem(7, 12), two;
  two.facts = one.facts;
  two.config = one.config;
  two.blocks = one.blocks;
  for (int copy = 0; copy < 2; ++copy) {
    const int first = static_cast<int>(two.tree.nodes().size());
    for (const tree::Node &node : one.tree.nodes())
      ASSERT_TRUE(two.tree.addNode(node.parent < 0 ? -1 : first + node.parent, node.tokens));
    for (const tree::Query &query : one.tree.queries())
      ASSERT_TRUE(two.tree.addQuery(first + query.node));
  }
  EXPECT_NEAR(Pricer(two).priceGreedy(), 2 * Pricer(one).priceGreedy(), 1e-6);
}

/// Subtrees alike in all but what hangs below them by an edge that is never joined: what is decided there may
/// come neither from their neighbours nor from a plan that was made before.
TEST(GreedyTest, PlansDependOnTheTreeAlone) {
  Planner used;
  config::Config config;
  config.partition = spec::Partition::Greedy;
  config.phases.resize(1);
  config.phases[0].tileQ = 16;
  for (int seed = 0; seed < 1000; ++seed) {
    Random random(static_cast<std::uint64_t>(seed));
    KvTree tree;
    ASSERT_TRUE(tree.addNode(-1, random.oneOf({50, 200, 1000})));
    const int near = random.oneOf({50, 100, 200}), middle = random.oneOf({100, 3000, 20000});
    const int branches = random.oneOf({2, 4}), leaves = random.oneOf({3, 9, 18});
    for (int branch = 0; branch < branches; ++branch) {
      const int at = tree.addNode(0, near).value();
      const int far = tree.addNode(at, middle).value();
      const int fork = tree.addNode(far, random.oneOf({20, 150, 400})).value();
      for (int i = 0; i < leaves; ++i)
        ASSERT_TRUE(tree.addQuery(tree.addNode(fork, random.oneOf({20, 150})).value()));
      ASSERT_TRUE(tree.addQuery(tree.addNode(at, 100).value()));
      ASSERT_TRUE(tree.addQuery(tree.addNode(far, 9000).value()));
    }
    ASSERT_TRUE(tree::placeInCache(tree, {}));
    Plan plan, again;
    Planner fresh;
    ASSERT_TRUE(fresh.make(tree, {4, 8}, config, 132, plan));
    ASSERT_TRUE(used.make(tree, {4, 8}, config, 132, again));
    ASSERT_EQ(plan.runs.size(), again.runs.size()) << "seed " << seed;
    ASSERT_EQ(plan.mergeSlot, again.mergeSlot) << "seed " << seed;
    ASSERT_EQ(std::memcmp(plan.runs.data(), again.runs.data(), plan.runs.size() * sizeof(abi::Run)), 0)
        << "seed " << seed;
  }
}

} // namespace
} // namespace deft::plan
