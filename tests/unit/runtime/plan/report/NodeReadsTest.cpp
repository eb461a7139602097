#include "runtime/plan/report/NodeReads.h"

#include "tests/unit/runtime/plan/report/ReportTesting.h"

namespace deft::plan {
namespace {

NodeReads sumOf(const std::vector<NodeReads> &reads) {
  NodeReads sum;
  for (const NodeReads &node : reads) {
    sum.first += node.first;
    sum.again += node.again;
  }
  return sum;
}

TEST(NodeReadsTest, ASharedNodeIsReadOnceByPartitionNode) {
  config::Config config = makeConfig(64);
  config.partition = spec::Partition::Node;
  const PlanReport report = reportOf(test::levelTree({1, 3}, {40, 20}), {4, 2}, config);
  const std::vector<NodeReads> reads = nodeReads(report);
  ASSERT_EQ(reads.size(), 4u);
  EXPECT_EQ(reads[0].first, 40);
  EXPECT_EQ(reads[0].again, 0);
  for (int node = 1; node < 4; ++node)
    EXPECT_EQ(reads[static_cast<std::size_t>(node)].first, 20);
}

TEST(NodeReadsTest, PartitionQueryReadsItOnceForEachQuery) {
  config::Config config = makeConfig(64);
  config.partition = spec::Partition::Query;
  const PlanReport report = reportOf(test::levelTree({1, 3}, {40, 20}), {4, 2}, config);
  const std::vector<NodeReads> reads = nodeReads(report);
  EXPECT_EQ(reads[0].first, 40);
  EXPECT_EQ(reads[0].again, 80);
  EXPECT_EQ(reads[1].again, 0);
}

TEST(NodeReadsTest, AllNodesTogetherAreTheBytesOfTheCache) {
  for (const spec::Partition partition :
       {spec::Partition::Query, spec::Partition::Union, spec::Partition::NodeChunk}) {
    config::Config config = makeConfig(16);
    config.partition = partition;
    const PlanReport report = reportOf(test::levelTree({2, 3, 2}, {100, 37, 5}), {4, 2}, config);
    const NodeReads sum = sumOf(nodeReads(report));
    EXPECT_EQ(sum.first * report.facts.tokenBytes(), report.io.cacheOnce);
    EXPECT_EQ((sum.first + sum.again) * report.facts.tokenBytes(), report.io.cache);
  }
}

TEST(NodeReadsTest, WhatAMaskHidesIsNotRead) {
  const PlanReport report = reportOf(test::levelTree({1, 3}, {40, 20}), windowFacts());
  const std::vector<NodeReads> reads = nodeReads(report);
  EXPECT_EQ(reads[0].first, 0);
  EXPECT_EQ(reads[1].first, 8);
}

} // namespace
} // namespace deft::plan
