#include "runtime/plan/Io.h"
#include "runtime/plan/Planner.h"
#include "tests/support/Forest.h"

#include <gtest/gtest.h>

namespace deft::plan {
namespace {

using tree::KvTree;

config::Config configOf(spec::Partition partition, int chunkTokens = 0) {
  config::Config config;
  config.partition = partition;
  config.chunkTokens = chunkTokens;
  config.phases.resize(1);
  config.phases[0].tileQ = 64;
  return config;
}

Plan mustPlan(const KvTree &tree, const VariantFacts &facts, const config::Config &config) {
  auto plan = makePlan(tree, facts, config, 1);
  EXPECT_TRUE(plan) << plan.error().message;
  return std::move(*plan);
}

/// 100 shared tokens, two branches of 10: all numbers by hand.
TEST(IoTest, NodeReadsEveryTokenOnceAndMergesTwoPartialsAQuery) {
  const KvTree tree = test::levelTree({1, 2}, {100, 10});
  const VariantFacts facts{4, 2, spec::Tensors::alike(64)};
  const IoBytes bytes = io(mustPlan(tree, facts, configOf(spec::Partition::Node)), facts);
  EXPECT_EQ(bytes.cache, 120 * 2 * 2 * 64 * 2); // K and V, KV heads, head dim, bytes
  EXPECT_EQ(bytes.cacheOnce, bytes.cache);
  EXPECT_EQ(bytes.queries, 4 * 8 * 64 * 2); // both for the prompt, one for each branch; 8 heads
  EXPECT_EQ(bytes.outputs, 2 * 8 * 64 * 2);
  EXPECT_EQ(bytes.partials, 2 * 4 * 8 * (64 * 2 + 4)); // written and read
  EXPECT_EQ(bytes.masks, 3 * 8 * 2);
}

TEST(IoTest, QueryReadsThePathsAndNeedsNoPartial) {
  const KvTree tree = test::levelTree({1, 2}, {100, 10});
  const VariantFacts facts{4, 2, spec::Tensors::alike(64)};
  const IoBytes bytes = io(mustPlan(tree, facts, configOf(spec::Partition::Query, 4096)), facts);
  EXPECT_EQ(bytes.cache, 220 * 2 * 2 * 64 * 2);
  EXPECT_EQ(bytes.cacheOnce, 120 * 2 * 2 * 64 * 2);
  EXPECT_EQ(bytes.partials, 0);
}

TEST(IoTest, SumsAddEveryMember) {
  const IoBytes one{1, 2, 3, 4, 5, 6, 7};
  IoBytes sum = one;
  sum += one;
  EXPECT_EQ(sum, (IoBytes{2, 4, 6, 8, 10, 12, 14}));
  EXPECT_EQ(one.total(), 1 + 3 + 4 + 5 + 6 + 7);
}

/// 2^31 elements and more, by arithmetic.
TEST(IoTest, LargeCachesDoNotOverflow) {
  KvTree tree;
  ASSERT_TRUE(tree.addNode(-1, 1 << 29));
  ASSERT_TRUE(tree.addQuery(0));
  const VariantFacts facts{1, 128, spec::Tensors::alike(256)};
  const IoBytes bytes = io(mustPlan(tree, facts, configOf(spec::Partition::Node, 1 << 20)), facts);
  EXPECT_EQ(bytes.cache, (std::int64_t{1} << 29) * 2 * 128 * 256 * 2);
}

TEST(IoTest, EveryPartitionReadsAtLeastTheTree) {
  for (int seed = 0; seed < 50; ++seed) {
    const KvTree tree = test::randomForest(static_cast<std::uint64_t>(seed), {24, 90, 16});
    for (spec::Partition partition : kAutoPartitions) {
      const VariantFacts facts{4, 2};
      const Plan plan = mustPlan(tree, facts, configOf(partition));
      const IoBytes bytes = io(plan, facts);
      EXPECT_GE(bytes.cache, bytes.cacheOnce);
      EXPECT_EQ(bytes.cacheOnce, plan.readTokens * 2 * 2 * 128 * 2);
      if (partition == spec::Partition::Node ||
          partition == spec::Partition::NodeChunk) { // one row tile holds all
        EXPECT_EQ(bytes.cache, bytes.cacheOnce) << "seed " << seed;
      }
    }
  }
}

} // namespace
} // namespace deft::plan
