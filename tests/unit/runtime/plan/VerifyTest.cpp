#include "runtime/plan/Verify.h"
#include "runtime/tree/CachePlacement.h"
#include "tests/unit/runtime/plan/PlanTesting.h"

#include <gtest/gtest.h>

#include <functional>

namespace deft::plan {
namespace {

/// Breaks one field of a right plan at a time: the checker that all planner tests rest on must notice.
TEST(VerifyTest, NoticesEveryKindOfDamage) {
  tree::KvTree tree = test::levelTree({1, 2, 6}, {64, 40, 30});
  ASSERT_TRUE(tree::placeInCache(tree, {}));
  const VariantFacts facts{4, 1};
  config::Config config;
  config.chunkTokens = 64;
  config.phases.resize(1);
  const auto made = makePlan(tree, facts, config, 4);
  ASSERT_TRUE(made);
  const auto sound = verify(*made, tree, facts, config);
  ASSERT_TRUE(sound) << sound.error().message;
  ASSERT_GT(made->partialSlots, 0);

  const std::pair<const char *, std::function<void(Plan &)>> damages[] = {
      {"generation", [](Plan &p) { ++p.generation; }},
      {"item query begin", [](Plan &p) { ++p.items[0].queryBegin; }},
      {"item query count", [](Plan &p) { ++p.items[0].queryCount; }},
      {"item run begin", [](Plan &p) { ++p.items[0].runBegin; }},
      {"item run count", [](Plan &p) { --p.items[0].runCount; }},
      {"item tokens", [](Plan &p) { --p.items[0].tokens; }},
      {"item missing",
       [](Plan &p) {
         p.items.pop_back();
         --p.phases[0].itemCount;
       }},
      {"item twice",
       [](Plan &p) {
         p.items.push_back(p.items.back());
         ++p.phases[0].itemCount;
       }},
      {"item partial", [](Plan &p) { ++p.items[0].partialBegin; }},
      {"item direct", [](Plan &p) { p.items[0].partialBegin = -1; }},
      {"run begin", [](Plan &p) { ++p.runs.toChange()[0].begin; }},
      {"run tokens", [](Plan &p) { ++p.runs.toChange()[0].tokens; }},
      {"run location", [](Plan &p) { ++p.runs.toChange()[0].location; }},
      {"run position", [](Plan &p) { ++p.runs.toChange()[0].position; }},
      {"run depth", [](Plan &p) { ++p.runs.toChange()[0].depth; }},
      {"run query begin", [](Plan &p) { ++p.runs.toChange()[0].queryBegin; }},
      {"run query end", [](Plan &p) { --p.runs.toChange()[0].queryEnd; }},
      {"query order", [](Plan &p) { std::swap(p.callerIndex[0], p.callerIndex.back()); }},
      {"caller index", [](Plan &p) { p.callerIndex[0] = p.callerIndex[1]; }},
      {"query position", [](Plan &p) { ++p.queryPos[0]; }},
      {"merge query", [](Plan &p) { p.mergeQuery[0] = p.mergeQuery[1]; }},
      {"merge begin", [](Plan &p) { ++p.mergeBegin[1]; }},
      {"merge slot", [](Plan &p) { p.mergeSlot[0] = p.mergeSlot[1]; }},
      {"merge order", [](Plan &p) { std::swap(p.mergeSlot[0], p.mergeSlot[1]); }},
      {"phase count", [](Plan &p) { --p.phases[0].itemCount; }},
      {"page table", [](Plan &p) { ++p.tableTokens; }},
      {"item order", [](Plan &p) { std::swap(p.items.front(), p.items.back()); }},
  };
  for (const auto &[what, damage] : damages) {
    Plan broken = *made;
    damage(broken);
    EXPECT_FALSE(verify(broken, tree, facts, config)) << what;
  }
}

TEST(VerifyTest, EachDamageToACausalStretchIsNoticed) {
  tree::KvTree tree;
  const int node = tree.addNode(-1, 40).value();
  for (int seen = 25; seen <= 40; ++seen)
    (void)tree.addQuery(node, seen).value();
  const VariantFacts facts{1, 1};
  const config::Config config = makeConfig(0, {16});
  const Plan made = mustVerify(tree, facts, config, 1);
  ASSERT_EQ(made.runs.size(), 2U);
  ASSERT_EQ(made.runs[1].slope, 1);
  const std::pair<const char *, std::function<void(Plan &)>> damages[] = {
      {"all see all", [](Plan &p) { p.runs.toChange()[1].slope = 0; }},
      {"another's slope", [](Plan &p) { p.runs.toChange()[0].slope = 1; }},
      {"a slope downwards", [](Plan &p) { p.runs.toChange()[1].slope = -1; }},
      {"a later slope", [](Plan &p) { ++p.runs.toChange()[1].queryBegin; }},
      {"a token that nobody sees",
       [](Plan &p) {
         --p.runs.toChange()[1].queryEnd;
         --p.items[0].queryCount;
       }},
  };
  for (const auto &[what, damage] : damages) {
    Plan broken = made;
    damage(broken);
    EXPECT_FALSE(verify(broken, tree, facts, config)) << what;
  }
}

TEST(VerifyTest, PlacesAreCheckedWhereAskedFor) {
  const tree::KvTree tree = test::levelTree({1, 2}, {64, 40}); // nobody placed it
  const VariantFacts facts{4, 1};
  const config::Config config = makeConfig(64);
  const Plan plan = mustVerify(tree, facts, config);
  const auto checked = verify(plan, tree, facts, config, {.checkPlaces = true});
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().message, "node 0 has slots 0 to 63, node 1 has slots 0 to 39: they share some");
  const tree::KvTree inCache = placed(tree);
  const Plan placedPlan = mustPlan(inCache, facts, config);
  EXPECT_TRUE(verify(placedPlan, inCache, facts, config, {.checkPlaces = true}));
}

TEST(VerifyTest, EachDamageToDealtTokensIsNoticed) {
  const tree::KvTree tree = test::levelTree({1, 4}, {128, 40});
  const VariantFacts facts{16, 1};
  config::Config config = makeConfig(0, {64});
  config.order = config::Order::Mixed;
  config.phases[0].family = config::Family::Sm90;
  const Plan made = mustVerify(tree, facts, config, 1);
  ASSERT_EQ(made.items.size(), 1U);
  ASSERT_GT(made.items[0].dealtTiles, 0);
  const std::pair<const char *, std::function<void(Plan &)>> damages[] = {
      {"too few tiles", [](Plan &p) { --p.items[0].dealtTiles; }},
      {"common tokens", [](Plan &p) { ++p.items[0].commonTokens; }},
      {"another's runs", [](Plan &p) { --p.runs.toChange()[2].dealtBegin; }},
      {"no such run", [](Plan &p) { p.runs.toChange()[3].dealtBegin = 5; }},
      {"before the first", [](Plan &p) { p.runs.toChange()[0].dealtBegin = -1; }},
      {"another warp's tokens",
       [](Plan &p) { std::swap(p.runs.toChange()[1].queryBegin, p.runs.toChange()[2].queryBegin); }},
  };
  for (const auto &[what, damage] : damages) {
    Plan broken = made;
    damage(broken);
    EXPECT_FALSE(verify(broken, tree, facts, config)) << what;
  }
}

} // namespace
} // namespace deft::plan
