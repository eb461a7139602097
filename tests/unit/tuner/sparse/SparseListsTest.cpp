#include "tuner/sparse/SparseLists.h"

#include "tests/support/VariantBuilder.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace deft::sparse {
namespace {

spec::Variant selecting(int queryHeads, int kvHeads, std::vector<int> budgets) {
  spec::Variant variant = test::VariantBuilder(queryHeads, kvHeads, 128).variant;
  variant.select.emplace().budget.values = std::move(budgets);
  return variant;
}

TEST(SparseListsTest, EveryBudgetIsThereForEveryNumberOfQueriesPowersOfTwoFirst) {
  const std::vector<Lists> lists = listsOf(selecting(32, 8, {4096, 1024}));
  EXPECT_EQ(lists.size(), 24u);
  EXPECT_EQ(lists[0], (Lists{4096, 1}));
  EXPECT_EQ(lists[1], (Lists{1024, 1}));
  EXPECT_EQ(lists[12], (Lists{4096, 64}));
  EXPECT_EQ(lists[14], (Lists{4096, 3}));
  EXPECT_TRUE(listsOf(test::VariantBuilder(4, 2, 64).variant).empty());
}

TEST(SparseListsTest, CachesThatWouldBeTooLargeAreLeftOutAndTheOthersStayAffordable) {
  const spec::Variant many = selecting(64, 64, {16384});
  const std::vector<Lists> lists = listsOf(many);
  ASSERT_FALSE(lists.empty());
  EXPECT_LT(lists.size(), 12u);
  for (const Lists &one : lists)
    EXPECT_LE(64.0 * many.tensors.cacheBytes() * one.queries * pathTokens(many, one), 5e9);
}

TEST(SparseListsTest, PathsAreSomeTimesAsLongAsLists) {
  const spec::Variant variant = selecting(32, 8, {4096});
  EXPECT_EQ(pathTokens(variant, {4096, 1}), 8 * 4096);
  EXPECT_EQ(pathTokens(variant, {4096, 64}), 2 * 4096);
  EXPECT_EQ(pathTokens(variant, {1, 1}), 8);
  const auto tree = treeOf(variant, {64, 3});
  ASSERT_TRUE(tree) << tree.error().message;
  EXPECT_EQ(tree->queries().size(), 3u);
  EXPECT_EQ(tree->tokens(), 3 * 8 * 64);
  for (const tree::Query &query : tree->queries())
    EXPECT_EQ(tree->pathTokens(query), 8 * 64);
}

} // namespace
} // namespace deft::sparse
