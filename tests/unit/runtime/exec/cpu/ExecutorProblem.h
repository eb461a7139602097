#pragma once

#include "runtime/exec/RandomInputs.h"
#include "runtime/exec/cpu/CpuExecutor.h"
#include "runtime/plan/Planner.h"
#include "runtime/tree/CachePlacement.h"
#include "tests/support/Forest.h"
#include "tests/support/ScalarKernel.h"

#include <gtest/gtest.h>

#include <utility>

namespace deft::exec {

/// A step for a kernel in plain C++: runs also where there is no compiler.
struct ScalarProblem {
  using Scalar = test::ScalarKernel<6, 2, 16>;

  ScalarProblem(tree::KvTree someTree, std::uint64_t seed) : tree(std::move(someTree)) {
    const auto placement =
        tree::placeInCache(tree, {.pageSize = 16, .order = tree::PlacementOrder::Scattered, .seed = seed});
    EXPECT_TRUE(placement.ok());
    inputs = makeRandomInputs(variant, tree, *placement, {}, seed);
    config::Config config;
    config.chunkTokens = 32;
    config.phases = {{.name = "narrow", .tileQ = 16}};
    auto made = plan::makePlan(tree, plan::VariantFacts::of(variant), config, 4);
    EXPECT_TRUE(made.ok());
    plan = std::move(*made);
  }

  Outputs run(CpuExecutor &executor) const {
    Outputs outputs;
    const auto ran = executor.run(kernel, variant, plan, inputs, outputs);
    EXPECT_TRUE(ran.ok()) << (ran.ok() ? "" : ran.error().message);
    return outputs;
  }

  spec::Variant variant = Scalar::variant();
  CpuKernel kernel = Scalar::kernel();
  tree::KvTree tree;
  Inputs inputs;
  plan::Plan plan;
};

inline CpuExecutor makeExecutor(int threads) {
  auto executor = CpuExecutor::create(threads);
  EXPECT_TRUE(executor.ok()) << (executor.ok() ? "" : executor.error().message);
  return std::move(*executor);
}

} // namespace deft::exec
