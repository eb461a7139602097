#include "tests/unit/runtime/plan/PlanTesting.h"

namespace deft::plan {
namespace {

using ::testing::ElementsAre;
using tree::KvTree;

TEST(NodePartitionTest, EachNodeIsReadOnceByAllItsReaders) {
  const Plan plan = planOf(smallTree(), spec::Partition::Node, 0);
  EXPECT_THAT(itemsInOrder(plan),
              ElementsAre(isItem(0, 4, 100), isItem(0, 2, 40), isItem(0, 1, 10), isItem(1, 2, 10),
                          isItem(2, 4, 40), isItem(2, 3, 10), isItem(3, 4, 10)));
  EXPECT_EQ(plan.partialSlots, 12);
  EXPECT_THAT(plan.mergeBegin, ElementsAre(0, 3, 6, 9, 12));
}

TEST(NodePartitionTest, ChunksAreCountedFromTheNodesStart) {
  const Plan plan = planOf(test::levelTree({1}, {100}), spec::Partition::Node, 48);
  EXPECT_THAT(itemsInOrder(plan), ElementsAre(isItem(0, 1, 48), isItem(0, 1, 48), isItem(0, 1, 4)));
}

TEST(NodePartitionTest, MoreReadersThanATileMakeRowTiles) {
  KvTree tree = test::levelTree({1, 40}, {100, 1});
  const Plan plan = planOf(tree, spec::Partition::Node, 0);
  EXPECT_EQ(std::count_if(plan.items.begin(), plan.items.end(),
                          [](const abi::Item &item) { return item.tokens == 100; }),
            3); // 16 + 16 + 8
}

TEST(NodeChunkPartitionTest, LongNodesAreCutEvenly) {
  const Plan plan = planOf(test::levelTree({1}, {100}), spec::Partition::NodeChunk, 80);
  EXPECT_THAT(itemsInOrder(plan), ElementsAre(isItem(0, 1, 64), isItem(0, 1, 36)));
}

TEST(NodeChunkPartitionTest, WithoutAChunkTheMachineIsFilled) {
  EXPECT_GE(planOf(test::levelTree({1}, {8192}), spec::Partition::NodeChunk, 0).items.size(), 4u);
  EXPECT_EQ(planOf(test::levelTree({1}, {8192}), spec::Partition::Node, 0).items.size(), 1u);
}

} // namespace
} // namespace deft::plan
