#pragma once

#include "compiler/kernels/DefaultConfig.h"
#include "runtime/exec/Params.h"
#include "runtime/exec/RandomInputs.h"
#include "runtime/exec/cpu/CpuExecutor.h"
#include "runtime/plan/Planner.h"
#include "runtime/reference/Check.h"
#include "runtime/tree/CachePlacement.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

/// A step of any variant for a kernel that was compiled for it, and what is expected of its outputs.
namespace deft::exec {

/// Parameters without a default get a value that lets most tokens be seen.
inline std::vector<std::string> assignmentsFor(const spec::Variant &variant) {
  std::vector<std::string> assignments;
  for (const spec::Param &param : variant.params)
    if (!param.defaultValue && !param.isSizedByRun()) // those are documents, at random
      assignments.push_back(param.name + (param.type == spec::ScalarType::F32 ? "=0.125" : "=48"));
  return assignments;
}

struct Problem {
  tree::KvTree tree;
  Inputs inputs;
  plan::Plan plan;
};

/// Scattered in the cache, and cut into chunks small enough that most queries are merged; 0: as few as will
/// do.
inline Problem makeProblem(const spec::Variant &variant, tree::KvTree tree, int chunkTokens,
                           std::uint64_t seed, std::optional<spec::Partition> partition = {}) {
  Problem problem;
  auto placement = tree::placeInCache(
      tree, {.pageSize = variant.cache.pageSize, .order = tree::PlacementOrder::Scattered, .seed = seed});
  EXPECT_TRUE(placement.ok());
  auto params = bindParams(variant, assignmentsFor(variant));
  EXPECT_TRUE(params.ok()) << (params.ok() ? "" : params.error().message);
  problem.inputs = makeRandomInputs(variant, tree, *placement, *params, seed);
  auto config = kernels::defaultConfig(variant, nullptr);
  EXPECT_TRUE(config.ok());
  config->chunkTokens = chunkTokens;
  if (partition)
    config->partition = *partition;
  auto plan = plan::makePlan(tree, plan::VariantFacts::of(variant), *config, 4);
  EXPECT_TRUE(plan.ok()) << (plan.ok() ? "" : plan.error().message);
  problem.plan = std::move(*plan);
  problem.tree = std::move(tree);
  return problem;
}

inline Outputs run(const CpuKernel &kernel, const spec::Variant &variant, const Problem &problem,
                   int threads) {
  Outputs outputs;
  auto ran = runCpu(kernel, variant, problem.plan, problem.inputs, outputs, threads);
  EXPECT_TRUE(ran.ok()) << (ran.ok() ? "" : ran.error().message);
  return outputs;
}

/// Each token of each row, once.
inline void expectCounted(const CpuKernel &kernel, const spec::Variant &variant, const Problem &problem,
                          long long mostRowTokens = 0) {
  reference::Counting counting(variant, problem.tree, problem.inputs, {1, mostRowTokens});
  const auto ran = reference::runPasses(counting, [&](Inputs &inputs, Outputs &outputs) {
    return runCpu(kernel, variant, problem.plan, inputs, outputs, 2);
  });
  EXPECT_TRUE(ran.ok());
  const auto counted = counting.judge();
  EXPECT_TRUE(counted.passed()) << counted.fault;
}

inline void expectRight(const CpuKernel &kernel, const spec::Variant &variant, const Problem &problem) {
  const Outputs outputs = run(kernel, variant, problem, 2);
  const auto report = reference::check(variant, problem.tree, problem.inputs, outputs,
                                       {.threads = 2, .mostRowTokens = 30'000});
  EXPECT_TRUE(report.passed()) << reference::explainFailure(report);
  expectCounted(kernel, variant, problem, /*mostRowTokens=*/30'000);
}

} // namespace deft::exec
