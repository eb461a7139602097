/// Trees over ranks, executed: each rank has its own tokens alone, and what is merged is compared with the
/// oracle over all of them.

#include "runtime/exec/MergeStates.h"
#include "runtime/exec/RandomInputs.h"
#include "runtime/exec/cpu/CpuExecutor.h"
#include "runtime/reference/Check.h"
#include "tests/support/RankLayouts.h"
#include "tests/support/ScalarKernel.h"
#include "tests/unit/runtime/plan/PlanTesting.h"

#include <cmath>
#include <numeric>

namespace deft::plan {
namespace {

using Kernel = test::ScalarKernel<6, 2, 8>;
using tree::KvTree;

constexpr int kHeads = 6, kDim = 8;

/// A rank's cache: the tokens that it holds, where they lie there, and NaN everywhere else.
exec::Inputs inputsOf(const KvTree &own, const exec::Inputs &all) {
  const spec::Variant variant = Kernel::variant();
  const int pageSize = variant.cache.pageSize;
  exec::Inputs inputs = all;
  int end = 0;
  std::vector<tree::HeldTokens> held;
  const auto forEachHeld = [&](auto take) {
    for (int node = own.firstRoot(); node >= 0; node = own.nextInPreorder(node)) {
      const tree::Node &facts = own.nodes()[static_cast<std::size_t>(node)];
      held.clear();
      own.ranks()->find(node, facts.location, 0, facts.tokens, false, held);
      for (const tree::HeldTokens &part : held)
        for (int t = 0; t < part.tokens; ++t)
          take(facts.location + part.begin + t, part.location + t);
    }
  };
  forEachHeld([&](int, int to) { end = std::max(end, to + 1); });
  inputs.pageTable.resize(static_cast<std::size_t>(end / pageSize + 1));
  std::iota(inputs.pageTable.begin(), inputs.pageTable.end(), 0);
  constexpr std::uint16_t kNan = 0x7fff;
  const auto elements = inputs.pageTable.size() * static_cast<std::size_t>(inputs.cache.k.pageStride);
  inputs.k.assign(elements, kNan);
  inputs.v.assign(elements, kNan);
  forEachHeld([&](int from, int to) {
    for (int head = 0; head < variant.kvHeads; ++head) {
      std::copy_n(all.k.begin() + all.keyAt(from, pageSize, head), kDim,
                  inputs.k.begin() + inputs.keyAt(to, pageSize, head));
      std::copy_n(all.v.begin() + all.valueAt(from, pageSize, head), kDim,
                  inputs.v.begin() + inputs.valueAt(to, pageSize, head));
    }
  });
  return inputs;
}

exec::Outputs outputsOf(const KvTree &own, const exec::Inputs &all, const config::Config &config,
                        bool isInvariant = false) {
  const spec::Variant variant = Kernel::variant();
  Planner planner({.isInvariant = isInvariant});
  Plan plan;
  const auto made = planner.make(own, VariantFacts::of(variant), config, 8, plan);
  EXPECT_TRUE(made) << made.error().message;
  exec::Outputs outputs;
  const auto ran = exec::runCpu(Kernel::kernel(), variant, plan, inputsOf(own, all), outputs, 1);
  EXPECT_TRUE(ran) << ran.error().message;
  return outputs;
}

exec::Outputs merged(std::vector<exec::Outputs> parts) {
  exec::Outputs all = parts[0];
  abi::StatesArgs args{};
  args.count = static_cast<int>(parts.size());
  args.dim = kDim;
  args.rows = static_cast<long long>(all.lse.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    args.outs[i] = parts[i].out.data();
    args.lses[i] = parts[i].lse.data();
  }
  args.out = all.out.data();
  args.lse = all.lse.data();
  exec::mergeStates(args, exec::StateType::BF16);
  return all;
}

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

TEST(RankResultsTest, MergedPartsMatchTheOracle) {
  for (std::uint64_t seed = 0; seed < 120; ++seed)
    for (const int count : {1, 2, 3, 4}) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::to_string(count) + " ranks");
      const Problem problem =
          makeProblem(seed % 2 == 0 ? test::randomForest(seed) : test::causalForest(seed), seed);
      const config::Config config =
          makeConfig(seed % 3 == 0 ? 0 : 64, {64, 16}, kAllPartitions[seed % kAllPartitions.size()]);
      std::vector<exec::Outputs> parts;
      for (int rank = 0; rank < count; ++rank)
        parts.push_back(outputsOf(test::ofRank(problem.tree, count, rank, seed), problem.inputs, config));
      const auto report = reference::check(Kernel::variant(), problem.tree, problem.inputs, merged(parts));
      ASSERT_TRUE(report.passed()) << reference::explainFailure(report);
      ASSERT_TRUE(report.hasLse);
    }
}

TEST(RankResultsTest, ARowWithoutTokensOnARankLeavesAnEmptyPart) {
  KvTree tree = test::levelTree({1, 2}, {16, 16});
  Problem problem = makeProblem(tree, 1);
  problem.tree.setRanks(tree::Ranks::make(2, 1, tree::RankLayout::ByNode, 1, {0, 0, 1}).value());
  const exec::Outputs part = outputsOf(problem.tree, problem.inputs, makeConfig(0));
  for (int head = 0; head < kHeads; ++head) {
    EXPECT_EQ(part.lse[static_cast<std::size_t>(head)], -std::numeric_limits<float>::infinity());
    EXPECT_TRUE(std::isfinite(part.lse[static_cast<std::size_t>(kHeads + head)]));
  }
}

/// Other requests, and where they lie, do not change a bit of the first ones' parts under invariant plans.
TEST(RankResultsTest, InvariantPartsDoNotDependOnOthers) {
  const config::Config config = makeConfig(32, {16}, spec::Partition::Node);
  for (std::uint64_t seed = 0; seed < 40; ++seed)
    for (const int count : {2, 3}) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::to_string(count) + " ranks");
      const KvTree alone = test::randomForest(seed, {24, 120, 12});
      const std::size_t rows = alone.queries().size() * kHeads;
      const auto holderOf = [&](int node) { return (node * 7 + static_cast<int>(seed)) % count; };
      std::vector<exec::Outputs> first(static_cast<std::size_t>(count));
      for (int others = 0; others < 3; ++others) {
        KvTree tree = alone;
        for (int i = 0; i < 8 * others; ++i)
          (void)tree.addQuery(tree.addNode(i % static_cast<int>(alone.nodes().size()), 10 + i).value());
        const Problem problem = makeProblem(tree, seed);
        std::vector<int> holders;
        for (int node = 0; node < static_cast<int>(tree.nodes().size()); ++node)
          holders.push_back(node < static_cast<int>(alone.nodes().size()) ? holderOf(node)
                                                                          : (node + others) % count);
        for (int rank = 0; rank < count; ++rank) {
          KvTree own = problem.tree;
          own.setRanks(tree::Ranks::make(count, rank, tree::RankLayout::ByNode, 1, holders).value());
          exec::Outputs outputs = outputsOf(own, problem.inputs, config, /*isInvariant=*/true);
          outputs.out.resize(rows * kDim);
          outputs.lse.resize(rows);
          exec::Outputs &expected = first[static_cast<std::size_t>(rank)];
          if (others == 0)
            expected = outputs;
          ASSERT_EQ(outputs.out, expected.out);
          ASSERT_EQ(outputs.lse, expected.lse);
        }
      }
    }
}

} // namespace
} // namespace deft::plan
