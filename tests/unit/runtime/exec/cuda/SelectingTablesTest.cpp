#include "runtime/exec/cuda/SelectingTables.h"

#include "runtime/plan/Planner.h"
#include "runtime/tree/CachePlacement.h"
#include "tests/support/Forest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace deft::exec {
namespace {

spec::Variant small() {
  spec::Variant variant;
  variant.queryHeads = 6;
  variant.kvHeads = 2;
  variant.tensors = spec::Tensors::alike(16);
  return variant;
}

plan::Plan planOf(const tree::KvTree &tree, int chunkTokens) {
  config::Config config;
  config.chunkTokens = chunkTokens;
  config.phases.push_back({.name = "narrow", .tileQ = 16});
  return *plan::makePlan(tree, plan::VariantFacts::of(small()), config, 8);
}

/// 8 KV heads, three blocks a multiprocessor of 132.
SparseSplit splitOf(int budget, bool isInvariant = false) {
  return {
      .budget = budget, .tileTokens = 64, .blocksOfItem = 8, .blocksAtOnce = 396, .isInvariant = isInvariant};
}

TEST(SelectingTablesTest, ListsAreCutSoThatTheirBlocksAreOneWave) {
  const SparseSplit split = splitOf(4096);
  const auto expectCut = [&](int queries, int itemTokens, int parts) {
    SCOPED_TRACE(queries);
    const SparseSplit::Cut cut = split.cut(queries);
    EXPECT_EQ(cut.itemTokens, itemTokens);
    EXPECT_EQ(cut.parts, parts);
  };
  expectCut(1, 128, 32); // 256 blocks: 64 tokens are not worth a start
  expectCut(8, 704, 6);  // 384
  expectCut(24, 2048, 2);
  expectCut(32, 1408, 3); // 768, two waves of 1,408 tokens in place of one of 4,096
  expectCut(49, 4096, 1);
  expectCut(300, 4096, 1);
}

TEST(SelectingTablesTest, ABudgetBelowATileIsOneItem) {
  const SparseSplit split = splitOf(3);
  EXPECT_EQ(split.cut(1).parts, 1);
  EXPECT_EQ(split.mostItems(7), 7);
}

TEST(SelectingTablesTest, InvariantListsAreCutAlikeForEveryNumberOfQueries) {
  const SparseSplit split = splitOf(4096, true);
  for (const int queries : {1, 8, 200}) {
    EXPECT_EQ(split.cut(queries).itemTokens, 512);
    EXPECT_EQ(split.cut(queries).parts, 8);
    EXPECT_EQ(split.mostItems(queries), 8 * queries);
  }
  EXPECT_EQ(splitOf(100, true).cut(1).parts, 1);
}

TEST(SelectingTablesTest, ThereIsRoomForTheItemsOfEveryNumberOfQueriesBelow) {
  for (const int budget : {1, 100, 1000, 4096})
    for (const int atOnce : {1, 7, 396, 3000})
      for (const int ofItem : {1, 8, 32}) {
        const SparseSplit split{
            .budget = budget, .tileTokens = 64, .blocksOfItem = ofItem, .blocksAtOnce = atOnce};
        int most = 0;
        for (int queries = 0; queries <= 300; ++queries) {
          most = std::max(most, queries * split.cut(queries).parts);
          EXPECT_LE(most, split.mostItems(queries)) << budget << ", " << atOnce << ", " << queries;
        }
      }
}

TEST(SelectingTablesTest, ItemsOfManyQueriesAndALargeBudgetAreCounted) {
  const SparseSplit split = splitOf(1 << 20);
  EXPECT_EQ(split.mostItems(1 << 18), 1 << 18);
  EXPECT_EQ(split.mostItems(3 << 17), 3 << 17);
  const SparseSplit invariant = splitOf(1 << 20, true);
  EXPECT_EQ(invariant.mostItems(100), 100 * invariant.cut(1).parts);
  EXPECT_EQ(invariant.mostItems(1 << 24), std::numeric_limits<int>::max()); // for which there is no room
}

TEST(SelectingTablesTest, AnItemHasAPartOfItsQuerysList) {
  const tree::KvTree tree = test::levelTree({1, 2}, {100, 20});
  const plan::Plan plan = planOf(tree, 32);
  plan::Paths paths;
  const SelectingTables tables =
      selectingTables(plan, {.budget = 300, .tileTokens = 128, .blocksAtOnce = 100}, 2, paths);
  ASSERT_EQ(tables.items.size(), 6u); // three each, of 128, 128 and 44
  const abi::Item &last = tables.items[5];
  EXPECT_EQ(last.queryBegin, 1);
  EXPECT_EQ(last.queryCount, 1);
  EXPECT_EQ(last.runBegin, plan.callerIndex[1]);
  EXPECT_EQ(last.runCount, 0);
  EXPECT_EQ(last.commonTokens, 256);
  EXPECT_EQ(last.tokens, 44);
  EXPECT_EQ(last.partialBegin, 5);
  EXPECT_EQ(tables.mergeQuery, (std::vector<int>{0, 1}));
  EXPECT_EQ(tables.mergeBegin, (std::vector<int>{0, 3, 6}));
  EXPECT_EQ(tables.mergeSlot, (std::vector<int>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(tables.partials, 6);
}

TEST(SelectingTablesTest, AnItemThatHasAllOfAListWritesTheOutput) {
  plan::Paths paths;
  const SelectingTables tables =
      selectingTables(planOf(test::levelTree({1, 2}, {100, 20}), 32),
                      {.budget = 64, .tileTokens = 64, .blocksAtOnce = 100}, 2, paths);
  ASSERT_EQ(tables.items.size(), 2u);
  EXPECT_EQ(tables.items[0].partialBegin, -1);
  EXPECT_TRUE(tables.mergeQuery.empty());
}

TEST(SelectingTablesTest, AUnionsItemsArePartsOfItAndOthersStandBesideThem) {
  tree::KvTree tree = test::levelTree({1, 5}, {100, 2});
  ASSERT_TRUE(tree::placeInCache(tree, {.pageSize = 1}).ok());
  const plan::Plan plan = planOf(tree, 32);
  plan::Paths paths;
  const SparseSplit split{
      .budget = 90, .tileTokens = 64, .blocksAtOnce = 100, .unions = {.queries = 4, .parts = 3}};
  const SelectingTables tables = selectingTables(plan, split, 5, paths);
  ASSERT_EQ(tables.unions.size(), 1u);
  ASSERT_EQ(tables.unions[0].queryCount, 4);
  EXPECT_EQ(tables.unions[0].sharedEnd, 100);
  EXPECT_EQ(tables.unitedQueries(), 4);
  ASSERT_EQ(tables.unitedItems.size(), 3u);
  for (int part = 0; part < 3; ++part) {
    const abi::Item &item = tables.unitedItems[static_cast<std::size_t>(part)];
    EXPECT_EQ(item.queryBegin, 0);
    EXPECT_EQ(item.queryCount, 4);
    EXPECT_EQ(item.runBegin, 0);
    EXPECT_EQ(item.runCount, 3);
    EXPECT_EQ(item.commonTokens, part);
    EXPECT_EQ(item.partialBegin, 4 * part);
    EXPECT_GT(item.tokens, 0);
  }
  ASSERT_EQ(tables.items.size(), 1u); // the fifth query's lists
  EXPECT_EQ(tables.items[0].queryBegin, 4);
  EXPECT_EQ(tables.items[0].partialBegin, -1);
  EXPECT_EQ(tables.mergeQuery, (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(tables.mergeBegin, (std::vector<int>{0, 3, 6, 9, 12}));
  EXPECT_EQ(tables.mergeSlot, (std::vector<int>{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}));
  EXPECT_EQ(tables.partials, 12);

  const SelectingTables fewer = selectingTables(plan, split, 3, paths); // of which there is room for
  EXPECT_EQ(fewer.unitedQueries(), 3);
  EXPECT_EQ(fewer.items.size(), 2u);
  EXPECT_TRUE(selectingTables(plan, split, 0, paths).unions.empty());
}

TEST(SelectingTablesTest, ThereIsRoomForTheUnionsOfEveryPlanBelow) {
  for (const int united : {2, 4, 32})
    for (const int parts : {1, 16, 132}) {
      const UnionShape shape{.queries = united, .parts = parts};
      int mostItems = 0, mostPartials = 0;
      for (int queries = 2; queries <= 200; ++queries) {
        for (int unions = (queries + united - 1) / united; 2 * unions <= queries; ++unions) {
          const int each = shape.partsOf(unions);
          mostItems = std::max(mostItems, unions * each);
          if (each > 1)
            mostPartials = std::max(mostPartials, queries * each);
        }
        EXPECT_LE(mostItems, shape.mostItems(queries)) << united << ", " << parts << ", " << queries;
        EXPECT_LE(mostPartials, shape.mostPartials(queries)) << united << ", " << parts << ", " << queries;
      }
    }
}

TEST(SelectingTablesTest, AStretchIsANodeHoweverChunksCutIt) {
  const tree::KvTree tree = test::levelTree({1, 2}, {100, 20});
  plan::Paths paths;
  const SelectingTables tables =
      selectingTables(planOf(tree, 16), {.budget = 64, .tileTokens = 64}, 2, paths);
  EXPECT_EQ(tables.positions, 120);
  ASSERT_EQ(tables.stretchBegin, (std::vector<int>{0, 2, 4}));
  for (const int query : {0, 1}) {
    const abi::PathStretch &root = tables.stretches[static_cast<std::size_t>(2 * query)],
                           &leaf = tables.stretches[static_cast<std::size_t>(2 * query + 1)];
    EXPECT_EQ(root.position, 0);
    EXPECT_EQ(root.tokens, 100);
    EXPECT_EQ(root.depth, 0);
    EXPECT_EQ(leaf.position, 100);
    EXPECT_EQ(leaf.tokens, 20);
    EXPECT_EQ(leaf.depth, 1);
  }
}

TEST(SelectingTablesTest, APathEndsWhereItsQueryIsThoughItsLastTokensAreHidden) {
  plan::Plan plan;
  plan.callerIndex = {0, 1};
  plan.queryPos = {99, 49};
  abi::Item item{};
  item.queryCount = item.runCount = 1;
  item.tokens = 60;
  plan.items.push_back(item);
  abi::Run run{};
  run.tokens = 60;
  run.location = 5;
  run.position = 10;
  run.queryEnd = 1;
  plan.runs.own().push_back(run);
  plan::Paths paths;
  const SelectingTables tables = selectingTables(plan, {.budget = 4, .tileTokens = 64}, 2, paths);
  ASSERT_EQ(tables.stretchBegin, (std::vector<int>{0, 2, 3}));
  EXPECT_EQ(tables.stretches[1].position, 100);
  EXPECT_EQ(tables.stretches[1].tokens, 0);
  EXPECT_EQ(tables.stretches[2].position, 50); // of a query that sees nothing
}

} // namespace
} // namespace deft::exec
