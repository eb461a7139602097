#include "runtime/exec/SizedParams.h"

#include "tests/support/Forest.h"
#include "tests/support/VariantBuilder.h"

#include <gtest/gtest.h>

#include <climits>
#include <cmath>
#include <set>

namespace deft::exec {
namespace {

using spec::ScalarType;
using Shape = spec::Param::Shape;

class SizedParamsTest : public ::testing::Test {
protected:
  SizedParamsTest() {
    build_.param("doc", ScalarType::I32, Shape::PerToken);
    build_.param("gain", ScalarType::F32, Shape::PerToken);
    build_.param("own", ScalarType::I32, Shape::PerQuery);
    tree_ = test::levelTree({1, 3}, {21, 9});
    build_.variant.cache.pageSize = 4;
    const auto placed =
        tree::placeInCache(tree_, {.pageSize = 4, .order = tree::PlacementOrder::Scattered, .seed = 3});
    EXPECT_TRUE(placed);
    placement_ = *placed;
  }

  std::vector<ParamValue> place(std::vector<ParamValue> params, std::uint64_t seed = 1) {
    return placeSizedParams(build_.variant, tree_, placement_, std::move(params), seed);
  }
  /// Slots of the tokens, node after node.
  std::vector<std::size_t> slots() const {
    std::vector<std::size_t> all;
    for (const tree::Node &node : tree_.nodes())
      for (int t = 0; t < node.tokens; ++t) {
        const int location = node.location + t;
        all.push_back(static_cast<std::size_t>(
            placement_.pageTable[static_cast<std::size_t>(location / 4)] * 4 + location % 4));
      }
    return all;
  }

  test::VariantBuilder build_;
  tree::KvTree tree_;
  tree::CachePlacement placement_;
};

TEST_F(SizedParamsTest, WhatIsGivenForTokensLiesInTheirSlotsAndOtherSlotsShow) {
  std::vector<ParamValue> given(3);
  for (int i = 0; i < static_cast<int>(tree_.tokens()); ++i)
    given[0].i32.push_back(100 + i);
  given[1].f32 = {0.5f}; // one for all
  const auto params = place(given);
  ASSERT_EQ(params[0].i32.size(), static_cast<std::size_t>(placement_.poolTokens()));
  const std::vector<std::size_t> slots = this->slots();
  for (std::size_t token = 0; token < slots.size(); ++token) {
    EXPECT_EQ(params[0].i32[slots[token]], 100 + static_cast<int>(token));
    EXPECT_EQ(params[1].f32[slots[token]], 0.5f);
  }
  const std::set<std::size_t> taken(slots.begin(), slots.end());
  ASSERT_LT(taken.size(), params[0].i32.size());
  for (std::size_t slot = 0; slot < params[0].i32.size(); ++slot)
    if (!taken.count(slot)) {
      EXPECT_EQ(params[0].i32[slot], INT_MAX);
      EXPECT_TRUE(std::isnan(params[1].f32[slot]));
    }
}

// Rule P6.
TEST_F(SizedParamsTest, ATokenHasAnElementForEachKvHead) {
  build_.variant.kvHeads = 2;
  build_.variant.queryHeads = 4;
  build_.param("scale", ScalarType::F32, Shape::PerTokenAndHead);
  std::vector<ParamValue> given(4);
  for (int i = 0; i < 2 * static_cast<int>(tree_.tokens()); ++i)
    given[3].f32.push_back(static_cast<float>(i));
  const auto params = place(given);
  ASSERT_EQ(params[3].f32.size(), 2 * static_cast<std::size_t>(placement_.poolTokens()));
  const std::vector<std::size_t> slots = this->slots();
  for (std::size_t token = 0; token < slots.size(); ++token)
    for (const std::size_t head : {0u, 1u})
      EXPECT_EQ(params[3].f32[2 * slots[token] + head], static_cast<float>(2 * token + head));
  given[3].f32.pop_back();
  const auto checked = checkSizedParams(build_.variant, tree_, given);
  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(checked.error().message, "parameter `scale` has " + std::to_string(2 * tree_.tokens() - 1) +
                                         " values, the tree has " + std::to_string(tree_.tokens()) +
                                         " tokens of 2 KV heads");
}

TEST_F(SizedParamsTest, ATokensRandomValueDoesNotHangOnWhereItLies) {
  const auto here = place(std::vector<ParamValue>(3));
  const std::vector<std::size_t> before = slots();
  placement_ = *tree::placeInCache(tree_, {.pageSize = 4});
  const auto there = place(std::vector<ParamValue>(3));
  const std::vector<std::size_t> after = slots();
  std::set<int> documents;
  for (std::size_t token = 0; token < before.size(); ++token) {
    EXPECT_EQ(here[0].i32[before[token]], there[0].i32[after[token]]);
    EXPECT_EQ(here[1].f32[before[token]], there[1].f32[after[token]]);
    documents.insert(here[0].i32[before[token]]);
  }
  for (const int document : documents)
    EXPECT_TRUE(document >= 0 && document < 4) << document;
  EXPECT_NE(here[1].f32[before[0]], here[1].f32[before[1]]);
  EXPECT_NE(place(std::vector<ParamValue>(3), 2)[1].f32[after[0]], there[1].f32[after[0]]);
}

TEST_F(SizedParamsTest, QueriesHaveValuesInTheCallersOrder) {
  std::vector<ParamValue> given(3);
  given[2].i32 = {7, 8, 9};
  EXPECT_EQ(place(given)[2].i32, (std::vector<std::int32_t>{7, 8, 9}));
  EXPECT_EQ(place(std::vector<ParamValue>(3))[2].i32.size(), tree_.queries().size());
}

TEST_F(SizedParamsTest, WhatFitsNoTreeIsToldWithBothNumbers) {
  std::vector<ParamValue> given(3);
  EXPECT_TRUE(checkSizedParams(build_.variant, tree_, given));
  given[0].i32.assign(5, 1);
  const auto tokens = checkSizedParams(build_.variant, tree_, given);
  ASSERT_FALSE(tokens);
  EXPECT_EQ(tokens.error().message, "parameter `doc` has 5 values, the tree has 48 tokens");
  given[0].i32.assign(48, 1);
  given[2].i32.assign(2, 1);
  const auto queries = checkSizedParams(build_.variant, tree_, given);
  ASSERT_FALSE(queries);
  EXPECT_EQ(queries.error().message, "parameter `own` has 2 values, the tree has 3 queries");
}

} // namespace
} // namespace deft::exec
