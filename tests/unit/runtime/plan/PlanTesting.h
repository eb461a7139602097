#pragma once

#include "compiler/config/ConfigJson.h"
#include "runtime/plan/Planner.h"
#include "runtime/plan/Verify.h"
#include "runtime/tree/CachePlacement.h"
#include "tests/support/Forest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

namespace deft::plan {

inline constexpr std::array kAllPartitions{
#define DEFT_PARTITION(ID, ...) spec::Partition::ID,
    DEFT_PARTITIONS(DEFT_PARTITION)
#undef DEFT_PARTITION
};

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

/// The name of a parameterised test: letters only.
inline std::string partitionTestName(const testing::TestParamInfo<spec::Partition> &info) {
  std::string name = config::partitionName(info.param);
  std::erase(name, '_');
  return name;
}

/// Root of 100 tokens, two branches of 40, two leaves of 10 below each, a query on every leaf.
inline tree::KvTree smallTree() { return test::levelTree({1, 2, 4}, {100, 40, 10}); }

/// Queries [begin, end) and tokens of an item.
inline auto isItem(int begin, int end, int tokens) {
  using testing::Field;
  return testing::AllOf(Field(&abi::Item::queryBegin, begin), Field(&abi::Item::queryCount, end - begin),
                        Field(&abi::Item::tokens, tokens));
}

/// The plan's items in the order in which they were cut: by their first run.
inline std::vector<abi::Item> itemsInOrder(Plan plan) {
  std::sort(plan.items.begin(), plan.items.end(),
            [](const abi::Item &a, const abi::Item &b) { return a.runBegin < b.runBegin; });
  return plan.items;
}

/// For 4 blocks, one head, verified.
inline Plan planOf(const tree::KvTree &tree, spec::Partition partition, int chunk, int tileQ = 16) {
  return mustVerify(tree, {1, 1}, makeConfig(chunk, {tileQ}, partition), 4);
}

} // namespace deft::plan
