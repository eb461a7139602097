#include "tests/support/SetVariable.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <deft/plan.hpp>

#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deft {
namespace {

using testing::HasSubstr;

struct Family {
  Tree tree;
  int root, left, right;
};

Family makeFamily() {
  Family family;
  family.root = family.tree.addRoot(50, 0).value();
  family.left = family.tree.addChild(family.root, 5, 64).value();
  family.right = family.tree.addChild(family.root, 7, 256).value();
  for (const int leaf : {family.left, family.right})
    (void)family.tree.addQuery(leaf).value();
  return family;
}

Attention attention() { return loadPackage(DEFT_TEST_PACKAGE).value(); }

TEST(PlanTest, AdvanceDoesNoMoreThanItMust) {
  Family family = makeFamily();
  Plan plan = Plan::make(attention(), family.tree).value();
  EXPECT_TRUE(plan.isCurrent());
  EXPECT_EQ(plan.advance(family.tree).value(), Advanced::Nothing);
  EXPECT_TRUE(family.tree.append(family.left, 1));
  EXPECT_FALSE(plan.isCurrent());
  EXPECT_EQ(plan.advance(family.tree).value(), Advanced::InPlace);
  EXPECT_TRUE(plan.isCurrent());
  EXPECT_TRUE(family.tree.prune(family.right));
  EXPECT_EQ(plan.advance(family.tree).value(), Advanced::Remade);
  EXPECT_EQ(plan.queryCount(), 1);
}

TEST(PlanTest, AnotherTreeIsNeverTakenForTheSame) {
  Family family = makeFamily();
  Plan plan = Plan::make(attention(), family.tree).value();
  Tree copy = family.tree;
  EXPECT_EQ(plan.advance(copy).value(), Advanced::Remade);
  EXPECT_TRUE(copy.append(family.left, 1));
  EXPECT_TRUE(family.tree.append(family.right, 1)); // the generations are now alike
  EXPECT_FALSE(plan.isCurrent());
  EXPECT_EQ(plan.advance(family.tree).value(), Advanced::Remade);
}

TEST(PlanTest, EveryPartitionPlans) {
  const Family family = makeFamily();
  for (const Partition partition :
       {Partition::Query, Partition::Node, Partition::NodeChunk, Partition::Flatten, Partition::Cascade,
        Partition::Greedy, Partition::Union, Partition::Auto}) {
    const auto plan = Plan::make(attention(), family.tree, {.partition = partition, .workers = 2});
    ASSERT_TRUE(plan) << plan.error().text();
    EXPECT_GT(plan->summary().items, 0);
    EXPECT_GE(plan->summary().tokensRead, 62);
  }
}

TEST(PlanTest, InvariantTakesPartitionNode) {
  const Family family = makeFamily();
  EXPECT_TRUE(Plan::make(attention(), family.tree, {.invariant = true}));
  const auto wrong = Plan::make(attention(), family.tree, {.partition = Partition::Union, .invariant = true});
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr("partition `node`"));
}

TEST(PlanTest, ANodeThatNobodyPlacedIsNamed) {
  Tree tree;
  const int root = tree.addRoot(50).value(), leaf = tree.addChild(root, 5, 64).value();
  (void)tree.addQuery(leaf).value();
  const auto refused = Plan::make(attention(), tree);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "node 0 of 50 tokens is not placed: it has no location in the cache");
  EXPECT_THAT(refused.error().hint, HasSubstr("place it"));
  EXPECT_TRUE(tree.place(root, 0));
  Plan plan = Plan::make(attention(), tree).value();

  const int branch = tree.fork(root).value(); // has no tokens to place yet
  (void)tree.addQuery(branch).value();
  EXPECT_EQ(plan.advance(tree).value(), Advanced::Remade);
  EXPECT_TRUE(tree.append(branch, 1));
  const auto grown = plan.advance(tree);
  ASSERT_FALSE(grown);
  EXPECT_THAT(grown.error().message, HasSubstr("node 2 of 1 tokens"));
  EXPECT_FALSE(plan.isCurrent());
  EXPECT_TRUE(tree.place(branch, 80));
  EXPECT_EQ(plan.advance(tree).value(), Advanced::Remade);
}

TEST(PlanTest, PlacesAreCheckedWhereAskedFor) {
  Family family = makeFamily();
  EXPECT_TRUE(family.tree.place(family.right, 68)); // the left one's last slot
  EXPECT_TRUE(Plan::make(attention(), family.tree));
  const auto refused = Plan::make(attention(), family.tree, {.checkPlaces = true});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "node 1 has slots 64 to 68, node 2 has slots 68 to 74: they share some");

  EXPECT_TRUE(family.tree.place(family.right, 70));
  Plan plan = Plan::make(attention(), family.tree, {.checkPlaces = true}).value();
  EXPECT_TRUE(family.tree.append(family.left, 1));
  EXPECT_EQ(plan.advance(family.tree).value(), Advanced::InPlace);
  EXPECT_TRUE(family.tree.append(family.left, 1)); // into the right one
  const auto grown = plan.advance(family.tree);
  ASSERT_FALSE(grown);
  EXPECT_THAT(grown.error().message, HasSubstr("node 1 has slots 64 to 70"));
  EXPECT_FALSE(plan.isCurrent());
  EXPECT_TRUE(family.tree.place(family.right, 128));
  EXPECT_EQ(plan.advance(family.tree).value(), Advanced::Remade);
}

TEST(PlanTest, SaysWhichConfigItHasAndWhy) {
  const Family family = makeFamily();
  const module_cache::TestFolder folder;
  const test::SetVariable noCache("DEFT_CACHE_DIR", folder.path("nothing"));
  const Plan untuned = Plan::make(attention(), family.tree).value();
  EXPECT_EQ(untuned.choice().rule, "heuristic");
  EXPECT_EQ(untuned.choice().treeClass, "c1-t6-q1-s1-d1-f3");
  EXPECT_EQ(untuned.choice().file, "");

  const std::string path = folder.path("one.json");
  std::ofstream(path) << R"({"partition": "node", "chunk_tokens": 16, "phases": [{"name": "tiles",
    "rows_above": -1, "family": "sm80", "tile_q": 64, "tile_kv": 64, "stages": 2, "warps": 4}]})";
  const test::SetVariable configs("DEFT_CONFIG_PATH", path);
  const Plan given = Plan::make(attention(), family.tree).value();
  EXPECT_EQ(given.choice().rule, "override");
  EXPECT_EQ(given.choice().file, path);
  EXPECT_EQ(given.choice().why, "given by " + path);
  EXPECT_EQ(given.summary().items, 6); // four chunks of the root, and a leaf each
  const Plan asked = Plan::make(attention(), family.tree, {.chunkTokens = 64}).value();
  EXPECT_EQ(asked.summary().items, 3); // the program's word goes before the file's
  EXPECT_EQ(Plan::make(attention(), family.tree, {.invariant = true}).value().choice().rule, "heuristic");
}

TEST(PlanTest, APageShowsItAndAnother) {
  Family family = makeFamily();
  const Plan plan = Plan::make(attention(), family.tree).value();
  const Plan other = Plan::make(attention(), family.tree, {.partition = Partition::Query}).value();
  EXPECT_THAT(plan.page(family.tree).value(), HasSubstr("<title>Plan of a tree"));
  EXPECT_THAT(plan.page(family.tree, other, family.tree).value(),
              testing::AllOf(HasSubstr("<title>Plans of a tree"), HasSubstr("\"label\":\"query\"")));
  EXPECT_TRUE(family.tree.append(family.left, 1));
  EXPECT_THAT(plan.page(family.tree).error().message, HasSubstr("the tree has changed since"));
}

TEST(PlanTest, ANegativeChunkIsAnError) {
  const Family family = makeFamily();
  EXPECT_THAT(Plan::make(attention(), family.tree, {.chunkTokens = -3}).error().message,
              HasSubstr("chunk is -3"));
}

} // namespace
} // namespace deft
