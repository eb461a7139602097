#include "tuner/measure/Work.h"

#include "tests/support/Forest.h"
#include "tests/support/ScalarKernel.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace deft::measure {
namespace {

using Scalar = test::ScalarKernel<4, 2, 16>;

Work makeWork() {
  Work work;
  work.variant = Scalar::variant();
  work.classes = {{"small", {test::levelTree({1, 4}, {40, 9}), test::levelTree({1, 3, 6}, {20, 12, 5})}},
                  {"large", {test::levelTree({2, 8}, {200, 30})}}};
  return work;
}

TEST(WorkTest, ACacheHasRoomForTheLargestOfEach) {
  const Work work = makeWork();
  const CacheSize small = CacheSize::of(work.classes[0].trees), large = CacheSize::of(work.classes[1].trees);
  EXPECT_EQ(small.tokens, 20 + 3 * 12 + 6 * 5);
  EXPECT_EQ(small.queries, 6);
  EXPECT_EQ(large.tokens, 2 * 200 + 8 * 30);
  const CacheSize both = CacheSize{5, 100}.orMore(large);
  EXPECT_EQ(both.tokens, large.tokens);
  EXPECT_EQ(both.queries, 100);
  EXPECT_EQ(CacheSize::of({}).tokens, 0);
}

/// Wherever pages lie: each node's tokens are places of the table that there are, one node's behind
/// another's.
TEST(WorkTest, TreesOfAClassLieInOneCacheEachFromItsBeginning) {
  for (const tree::PlacementOrder order : {tree::PlacementOrder::InOrder, tree::PlacementOrder::Scattered}) {
    Work work = makeWork();
    work.pages = order;
    const auto made = makeInputs(work, work.classes[0], {500, 9});
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(made->inputs.queryCount, 9);
    const int pageSize = work.variant.cache.pageSize;
    ASSERT_GT(pageSize, 0);
    EXPECT_GE(static_cast<int>(made->inputs.pageTable.size()) * pageSize, made->begin + 500);
    ASSERT_EQ(made->trees.size(), 2U);
    for (const tree::KvTree &tree : made->trees) {
      int least = 1 << 30, end = 0;
      for (const tree::Node &node : tree.nodes()) {
        least = std::min(least, node.location);
        end = std::max(end, node.location + node.tokens);
      }
      EXPECT_EQ(least, made->begin);
      EXPECT_EQ(end, made->begin + static_cast<int>(tree.tokens()));
    }
    const auto again = makeInputs(work, work.classes[0], {500, 9});
    EXPECT_EQ(again->inputs.q, made->inputs.q);
    EXPECT_EQ(again->inputs.pageTable, made->inputs.pageTable);
    work.seed = 2;
    EXPECT_NE(makeInputs(work, work.classes[0], {500, 9})->inputs.q, made->inputs.q);
  }
}

TEST(WorkTest, ACacheThatIsSharedIsMadeOnce) {
  Work work = makeWork();
  for (const bool isShared : {false, true}) {
    work.sharesCache = isShared;
    InputPool pool(work);
    EXPECT_TRUE(*pool.open(work.classes[0]));
    EXPECT_EQ(pool.trees().size(), 2U);
    const std::size_t bytes = pool.inputs().k.size();
    EXPECT_EQ(*pool.open(work.classes[1]), !isShared);
    EXPECT_EQ(pool.trees().size(), 1U);
    EXPECT_EQ(pool.inputs().k.size() == bytes, isShared);
    EXPECT_EQ(*pool.open(work.classes[0]), !isShared);
    // A class that the session does not know may need more.
    EXPECT_TRUE(*pool.open({"larger", {test::levelTree({2, 8}, {400, 30})}}));
    EXPECT_TRUE(*pool.open(work.classes[0]));
  }
}

} // namespace
} // namespace deft::measure
