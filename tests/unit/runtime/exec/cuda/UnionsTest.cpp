#include "runtime/exec/cuda/Unions.h"

#include "runtime/plan/Planner.h"
#include "runtime/tree/CachePlacement.h"
#include "tests/support/Forest.h"
#include "tests/support/TestTrees.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace deft::exec {
namespace {

constexpr UnionShape kShape{.queries = 8, .parts = 16, .mostRead = 0.7};

plan::Plan planOf(tree::KvTree tree) {
  EXPECT_TRUE(tree::placeInCache(tree, {.pageSize = 1}).ok());
  spec::Variant variant;
  variant.queryHeads = 6;
  variant.kvHeads = 2;
  variant.tensors = spec::Tensors::alike(16);
  config::Config config;
  config.chunkTokens = 32;
  config.phases.push_back({.name = "narrow", .tileQ = 16});
  return *plan::makePlan(tree, plan::VariantFacts::of(variant), config, 8);
}

std::vector<abi::Union> unionsOf(const tree::KvTree &tree, int budget, int mostQueries = 1000,
                                 const UnionShape &shape = kShape) {
  const plan::Plan plan = planOf(tree);
  plan::Paths paths;
  paths.read(plan);
  return findUnions(plan, paths, shape, budget, mostQueries);
}

TEST(UnionsTest, BranchesOfAPromptAreOne) {
  const auto unions = unionsOf(test::levelTree({1, 5}, {1000, 20}), 250);
  ASSERT_EQ(unions.size(), 1u);
  EXPECT_EQ(unions[0].queryBegin, 0);
  EXPECT_EQ(unions[0].queryCount, 5);
  EXPECT_EQ(unions[0].sharedEnd, 1000);
  EXPECT_EQ(unions[0].before, 0);
}

TEST(UnionsTest, MoreBranchesThanATileHoldsAreSeveral) {
  const auto unions = unionsOf(test::levelTree({1, 20}, {1000, 20}), 250);
  ASSERT_EQ(unions.size(), 3u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(unions[static_cast<std::size_t>(i)].queryBegin, 8 * i);
    EXPECT_EQ(unions[static_cast<std::size_t>(i)].before, 8 * i);
  }
  EXPECT_EQ(unions[2].queryCount, 4);
}

TEST(UnionsTest, QueriesThatShareNothingReadTheirOwn) {
  EXPECT_TRUE(unionsOf(test::levelTree({6}, {1000}), 250).empty());
}

TEST(UnionsTest, WhatIsSharedHasToBeWorthIt) {
  EXPECT_TRUE(unionsOf(test::levelTree({1, 5}, {100, 1000}), 250).empty());  // a tenth of each path
  EXPECT_TRUE(unionsOf(test::levelTree({1, 3}, {10000, 20}), 100).empty());  // lists that hardly meet
  EXPECT_FALSE(unionsOf(test::levelTree({1, 2}, {1000, 20}), 2000).empty()); // all tokens of both
}

TEST(UnionsTest, WithoutAKernelThereAreNone) {
  EXPECT_TRUE(unionsOf(test::levelTree({1, 5}, {1000, 20}), 250, 1000, {}).empty());
}

/// Lists that a caller hands over, of which nobody knows more than the caller says.
UnionShape givenShape(int budget, double overlap) {
  const UnionShape shape{
      .queries = 8, .parts = 16, .mostRead = 1, .areGiven = true, .mostListed = 4096, .leastSaved = 2000};
  return shape.with(budget, overlap);
}
TEST(UnionsTest, GivenListsAreUnitedWhereTheirCallerSaysThatTheyOverlap) {
  const tree::KvTree tree = test::levelTree({3, 12}, {1000, 20});
  EXPECT_TRUE(unionsOf(tree, 500, 1000, givenShape(500, 0)).empty());
  const auto unions = unionsOf(tree, 500, 1000, givenShape(500, 0.6));
  ASSERT_EQ(unions.size(), 3u); // of four queries each
  EXPECT_EQ(unions[2].queryCount, 4);
  EXPECT_EQ(unions[2].before, 8);
  EXPECT_TRUE(unionsOf(tree, 500, 1000, givenShape(500, 0.2)).empty()) << "too little is saved";
  EXPECT_TRUE(unionsOf(test::levelTree({12}, {1000}), 500, 1000, givenShape(500, 0.9)).empty());
}
TEST(UnionsTest, GivenListsMustSaveMoreThanUnionsCost) {
  config::CostCoefficients cost;
  EXPECT_NEAR(leastSavedOfGiven(cost, 132), 1400 * 132, 1);
  cost.unionUs *= 2;
  EXPECT_NEAR(leastSavedOfGiven(cost, 132), 2800 * 132, 1);
  cost.latentTokenUs *= 4;
  EXPECT_NEAR(leastSavedOfGiven(cost, 132), 700 * 132, 1);
}
TEST(UnionsTest, OnlyWhatPathsShareOverlaps) {
  const auto unions = unionsOf(test::levelTree({1, 3, 12}, {10, 1000, 10}), 500, 1000, givenShape(500, 0.6));
  ASSERT_EQ(unions.size(), 3u); // not across branches that have ten tokens in common
  for (const abi::Union &one : unions)
    EXPECT_EQ(one.queryCount, 4);
}
TEST(UnionsTest, GivenListsFillNoMoreThanTheTable) {
  EXPECT_EQ(givenShape(1000, 0.5).queries, 4);
  EXPECT_EQ(givenShape(3000, 0.5).queries, 0);
}

TEST(UnionsTest, PromptsOfTheirOwnAreUnionsOfTheirOwn) {
  const auto unions = unionsOf(test::levelTree({3, 12}, {1000, 20}), 300);
  ASSERT_EQ(unions.size(), 3u);
  EXPECT_EQ(unions[1].queryBegin, 4);
  EXPECT_EQ(unions[1].queryCount, 4);
}

TEST(UnionsTest, NoMoreQueriesAreInUnionsThanThereIsRoomFor) {
  const tree::KvTree tree = test::levelTree({3, 12}, {1000, 20});
  for (int most = 0; most <= 12; ++most) {
    int queries = 0;
    for (const abi::Union &one : unionsOf(tree, 300, most)) {
      EXPECT_EQ(one.before, queries);
      queries += one.queryCount;
    }
    EXPECT_LE(queries, most);
  }
}

/// Below the end of what is shared all queries have the same tokens, whatever the tree.
TEST(UnionsTest, WhatIsSharedIsTheSameForAll) {
  int found = 0;
  for (auto &[name, tree] : test::edgeTrees()) {
    const plan::Plan plan = planOf(tree);
    plan::Paths paths;
    paths.read(plan);
    for (const int budget : {1, 20, 1000})
      for (const abi::Union &one : findUnions(plan, paths, kShape, budget, 1000)) {
        ++found;
        std::vector<std::map<int, int>> tokens;
        for (int i = 0; i < one.queryCount; ++i) {
          auto &own = tokens.emplace_back();
          for (const plan::PathStretch &stretch :
               paths.of(plan.callerIndex[static_cast<std::size_t>(one.queryBegin + i)]))
            for (int t = 0; t < stretch.tokens && stretch.position + t < one.sharedEnd; ++t)
              own[stretch.position + t] = stretch.location + t;
        }
        for (const auto &own : tokens)
          EXPECT_EQ(own, tokens[0]) << name;
      }
  }
  EXPECT_GT(found, 10);
}

} // namespace
} // namespace deft::exec
