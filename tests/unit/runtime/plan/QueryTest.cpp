#include "tests/unit/runtime/plan/PlanTesting.h"

namespace deft::plan {
namespace {

using ::testing::ElementsAre;

TEST(QueryPartitionTest, EachQueryReadsItsPathAlone) {
  const Plan plan = planOf(smallTree(), spec::Partition::Query, 4096);
  EXPECT_THAT(itemsInOrder(plan),
              ElementsAre(isItem(0, 1, 150), isItem(1, 2, 150), isItem(2, 3, 150), isItem(3, 4, 150)));
  EXPECT_EQ(plan.partialSlots, 0);
  EXPECT_EQ(plan.items[0].runCount, 3);
}

TEST(QueryPartitionTest, AChunkSplitsThePath) {
  const Plan plan = planOf(smallTree(), spec::Partition::Query, 80);
  EXPECT_EQ(plan.items.size(), 8u);
  EXPECT_EQ(plan.partialSlots, 8);
}

} // namespace
} // namespace deft::plan
