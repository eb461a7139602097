#pragma once

#include "runtime/plan/Planner.h"
#include "runtime/plan/Verify.h"
#include "runtime/tree/CachePlacement.h"
#include "tests/support/Forest.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace deft::plan {

/// A config of one phase for each tile_q, widest first; a phase serves what the next one cannot hold.
inline config::Config makeConfig(int chunkTokens, const std::vector<int> &tileQs = {16},
                                 spec::Partition partition = spec::Partition::Union) {
  config::Config config;
  config.partition = partition;
  config.chunkTokens = chunkTokens;
  for (std::size_t i = 0; i < tileQs.size(); ++i) {
    config::PhaseConfig phase;
    phase.tileQ = tileQs[i];
    phase.rowsAbove = i + 1 < tileQs.size() ? tileQs[i + 1] : -1;
    config.phases.push_back(phase);
  }
  return config;
}

inline Plan mustPlan(const tree::KvTree &tree, const VariantFacts &facts, const config::Config &config,
                     int blocks = 132) {
  auto plan = makePlan(tree, facts, config, blocks);
  EXPECT_TRUE(plan) << plan.error().message;
  return plan ? std::move(*plan) : Plan();
}

/// A plan that is checked against its tree.
inline Plan mustVerify(const tree::KvTree &tree, const VariantFacts &facts, const config::Config &config,
                       int blocks = 132) {
  Plan plan = mustPlan(tree, facts, config, blocks);
  const auto verified = verify(plan, tree, facts, config);
  EXPECT_TRUE(verified) << verified.error().message;
  return plan;
}

/// Locations that tell nodes apart.
inline tree::KvTree placed(tree::KvTree tree) {
  EXPECT_TRUE(tree::placeInCache(tree, {}));
  return tree;
}

} // namespace deft::plan
