#include "tests/unit/runtime/plan/PlanTesting.h"

namespace deft::plan {
namespace {

using ::testing::ElementsAre;
using tree::KvTree;

TEST(FlattenPartitionTest, ChunksGoOverNodes) {
  // Depth-first: 100 | 40 10 10 | 40 10 10, cut at 128: the first chunk ends within the first branch.
  const Plan plan = planOf(smallTree(), spec::Partition::Flatten, 128);
  EXPECT_THAT(itemsInOrder(plan), ElementsAre(isItem(0, 4, 128), isItem(0, 4, 92)));
  const std::vector<abi::Item> items = itemsInOrder(plan);
  EXPECT_EQ(items[0].runCount, 2);
  EXPECT_EQ(plan.runs[1].queryEnd, 2);
  EXPECT_EQ(plan.runs[1].tokens, 28);
  EXPECT_EQ(items[1].runCount, 6);
  EXPECT_EQ(plan.partialSlots, 8);
}

TEST(FlattenPartitionTest, TheDefaultChunkIs128UntilThereAreManyForEachBlock) {
  const Plan few = planOf(test::levelTree({1}, {1000}), spec::Partition::Flatten, 0);
  EXPECT_EQ(few.items[0].tokens, 128);
  const Plan many = planOf(test::levelTree({1}, {64 * 256}), spec::Partition::Flatten, 0);
  EXPECT_EQ(many.items[0].tokens, 256); // 16 for each of 4 blocks
}

TEST(FlattenPartitionTest, UnreadNodesAreNotInTheSequence) {
  KvTree tree;
  const int root = tree.addNode(-1, 64).value();
  (void)tree.addNode(root, 500);
  (void)tree.addQuery(tree.addNode(root, 64).value());
  EXPECT_THAT(itemsInOrder(planOf(tree, spec::Partition::Flatten, 128)), ElementsAre(isItem(0, 1, 128)));
}

TEST(FlattenPartitionTest, AChunkOfManyReadersMakesRowTilesOfWhatTheySee) {
  // 64 shared tokens and 64 leaves of one token in one chunk; rows 0 to 15 see 16 of the leaves.
  const Plan plan = planOf(test::levelTree({1, 64}, {64, 1}), spec::Partition::Flatten, 128);
  EXPECT_EQ(plan.items.size(), 4u);
  for (const abi::Item &item : plan.items)
    EXPECT_EQ(item.tokens, 80);
  EXPECT_EQ(plan.partialSlots, 0);
}

} // namespace
} // namespace deft::plan
