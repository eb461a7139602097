/// Invariant plans through emitted kernels: other requests that join or leave do not change a bit of a
/// result.

#include "compiler/driver/Compilation.h"
#include "runtime/exec/Params.h"
#include "runtime/exec/RandomInputs.h"
#include "runtime/exec/cpu/CpuExecutor.h"
#include "runtime/plan/Planner.h"
#include "runtime/tree/CachePlacement.h"
#include "tests/support/Forest.h"
#include "tests/support/ShippedVariants.h"

#include <gtest/gtest.h>

#include <random>

namespace deft::exec {
namespace {

/// New nodes below any that are there, and queries that end anywhere in those.
void addOthers(tree::KvTree &tree, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const int nodes = static_cast<int>(tree.nodes().size());
  for (int i = 0; i < 12; ++i) {
    (void)tree.addQuery(tree.addNode(below(nodes + 1) - 1, below(90)).value());
    const int node = below(nodes);
    (void)tree.addQuery(node, below(tree.nodes()[node].tokens + 1));
  }
}

void expectInvariant(const spec::Variant &variant, const CpuKernel &kernel, const tree::KvTree &alone,
                     std::uint64_t seed) {
  std::vector<std::string> assignments; // such that most tokens are seen
  for (const spec::Param &param : variant.params)
    if (!param.defaultValue && !param.isSizedByRun())
      assignments.push_back(param.name + (param.type == spec::ScalarType::F32 ? "=0.125" : "=48"));
  const auto params = bindParams(variant, assignments);
  ASSERT_TRUE(params.ok()) << params.error().message;
  config::Config config;
  config.partition = spec::Partition::Node;
  config.chunkTokens = 48;
  config.phases.resize(1);
  config.phases[0].tileQ = 64;
  plan::Planner planner({.isInvariant = true});
  const std::size_t rows = alone.queries().size() * static_cast<std::size_t>(variant.queryHeads);
  Outputs first;
  for (std::uint64_t others = 0; others < 4; ++others) {
    tree::KvTree tree = alone;
    if (others > 0)
      addOthers(tree, 10 * seed + others);
    const auto placement = tree::placeInCache(
        tree, {.pageSize = variant.cache.pageSize, .order = tree::PlacementOrder::Scattered, .seed = seed});
    ASSERT_TRUE(placement.ok());
    const Inputs inputs = makeRandomInputs(variant, tree, *placement, *params, seed);
    plan::Plan plan;
    const auto made = planner.make(tree, plan::VariantFacts::of(variant), config, 4, plan);
    ASSERT_TRUE(made.ok()) << made.error().message;
    Outputs outputs;
    const auto ran = runCpu(kernel, variant, plan, inputs, outputs, 1);
    ASSERT_TRUE(ran.ok()) << ran.error().message;
    outputs.out.resize(rows * static_cast<std::size_t>(variant.tensors.out.dim));
    outputs.lse.resize(variant.withLse ? rows : 0);
    if (others == 0)
      first = outputs;
    ASSERT_EQ(outputs.out, first.out);
    ASSERT_EQ(outputs.lse, first.lse);
  }
}

/// `query`, the caller's index, is the same for the first requests in all of these trees, so a spec may read
/// it.
TEST(InvariantTest, OtherRequestsDoNotChangeABitOfShippedSpecs) {
  const test::ShippedVariants shipped = test::shippedVariants();
  for (const spec::Variant &variant : shipped.variants) {
    auto compilation = driver::Compilation::create(variant, shipped.sources);
    ASSERT_TRUE(compilation.ok());
    const auto kernel = compilation->jitCpuKernel();
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      SCOPED_TRACE(variant.name + ", seed " + std::to_string(seed));
      ASSERT_NO_FATAL_FAILURE(
          expectInvariant(variant, *kernel, test::randomForest(seed, {16, 120, 8}), seed));
    }
  }
}

TEST(InvariantTest, OtherRequestsDoNotChangeABitAtAnyRatio) {
  const support::SourceManager sources;
  for (const auto &[kvHeads, ratio] : {std::pair{2, 1}, {1, 2}, {1, 3}, {2, 4}, {1, 5}, {1, 8}, {1, 16}}) {
    spec::Variant variant;
    variant.name = "small";
    variant.kvHeads = kvHeads;
    variant.queryHeads = kvHeads * ratio;
    variant.tensors = spec::Tensors::alike(16);
    variant.withLse = true;
    variant.scale = 0.25;
    auto compilation = driver::Compilation::create(variant, sources);
    ASSERT_TRUE(compilation.ok());
    const auto kernel = compilation->jitCpuKernel();
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      SCOPED_TRACE("ratio " + std::to_string(ratio) + ", seed " + std::to_string(seed));
      ASSERT_NO_FATAL_FAILURE(
          expectInvariant(variant, *kernel, test::randomForest(seed, {16, 120, 8}), seed));
    }
  }
}

} // namespace
} // namespace deft::exec
