#include "runtime/exec/cuda/SelectingTables.h"

#include "runtime/plan/Planner.h"
#include "runtime/tree/CachePlacement.h"
#include "tests/support/Forest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

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

TEST(SelectingTablesTest, AMeasuredCutIsForItsNumberOfQueries) {
  SparseSplit split = splitOf(4096);
  ASSERT_EQ(split.cut(8), (SparseSplit::Cut{704, 6}));
  split.tuned = {{4096, 4, 0}, {4096, 8, 1024}, {4096, 32, 2048}};
  EXPECT_EQ(split.cut(8), (SparseSplit::Cut{1024, 4, true}));
  EXPECT_EQ(split.cut(32), (SparseSplit::Cut{2048, 2, true}));
  EXPECT_EQ(split.cut(4), splitOf(4096).cut(4)); // for which the rule was the fastest
  EXPECT_EQ(split.cut(3), splitOf(4096).cut(3));
  EXPECT_EQ(split.cut(9), splitOf(4096).cut(9)); // far below 32
  EXPECT_EQ(split.cut(64), splitOf(4096).cut(64));
  split.isInvariant = true;
  EXPECT_EQ(split.cut(8).itemTokens, 512);
}

TEST(SelectingTablesTest, FewerQueriesHaveItWhereTheCostsAreNoWorseForIt) {
  SparseSplit split = splitOf(4096);
  split.tuned = {{4096, 32, 1024}}; // 1,024 blocks, three waves; the rule has two of 1,408 tokens
  int used = 0;
  for (int queries = 16; queries < 32; ++queries) {
    const SparseSplit::Cut cut = split.cut(queries);
    used += cut.isTuned;
    if (cut.isTuned)
      EXPECT_EQ(cut, (SparseSplit::Cut{1024, 4, true}));
    else
      EXPECT_EQ(cut, splitOf(4096).cut(queries));
  }
  EXPECT_TRUE(split.cut(31).isTuned);
  EXPECT_FALSE(split.cut(16).isTuned); // 384 blocks of 1,408 tokens are one wave, 512 of 1,024 two
  EXPECT_GT(used, 1);
  EXPECT_LT(used, 16);
}

TEST(SelectingTablesTest, AllCutsThatThereMayBeBeginWithTheChosenOne) {
  const SparseSplit split = splitOf(4096);
  for (const int queries : {1, 8, 24, 300}) {
    const std::vector<SparseSplit::Cut> cuts = split.cuts(queries);
    ASSERT_FALSE(cuts.empty());
    EXPECT_EQ(cuts.front(), split.cut(queries));
    for (std::size_t i = 0; i < cuts.size(); ++i) {
      EXPECT_LE(queries * cuts[i].parts, split.mostItems(queries));
      EXPECT_EQ(std::count(cuts.begin(), cuts.end(), cuts[i]), 1);
    }
  }
  EXPECT_GT(split.cuts(1).size(), 10u);
}

/// Files may say anything.
TEST(SelectingTablesTest, WhateverWasMeasuredItemsCoverListsAndThereIsRoomForThem) {
  std::mt19937 random(7);
  const auto upTo = [&](int most) { return std::uniform_int_distribution<>(1, most)(random); };
  int tuned = 0;
  for (int round = 0; round < 300; ++round) {
    SparseSplit split{.budget = upTo(6000),
                      .tileTokens = 16 << upTo(3),
                      .blocksOfItem = upTo(32),
                      .blocksAtOnce = upTo(800)};
    for (int queries = upTo(20); queries < 300; queries += upTo(60))
      split.tuned.push_back({split.budget, queries, upTo(2) == 1 ? upTo(10000) : upTo(200)});
    const int room = upTo(300);
    const int mostItems = split.mostItems(room);
    for (int queries = 0; queries <= room; ++queries) {
      const SparseSplit::Cut cut = split.cut(queries);
      tuned += cut.isTuned;
      ASSERT_GT(cut.itemTokens, 0);
      ASSERT_EQ(cut.itemTokens % split.tileTokens, 0);
      ASSERT_GE(cut.parts * cut.itemTokens, split.budget);
      ASSERT_LT((cut.parts - 1) * cut.itemTokens, split.budget); // no item is empty
      ASSERT_LE(std::int64_t{queries} * cut.parts, mostItems);
    }
  }
  EXPECT_GT(tuned, 1000);
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
