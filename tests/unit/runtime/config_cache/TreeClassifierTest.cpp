#include "runtime/config_cache/TreeClassifier.h"

#include "runtime/tree/TreeSummary.h"
#include "tests/support/Forest.h"
#include "tests/support/TestTrees.h"
#include "tuner/workload/Workload.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>

namespace deft::config_cache {
namespace {

TreeFeatures measure(const tree::KvTree &tree) { return TreeClassifier().measure(tree); }
TreeClass classify(const tree::KvTree &tree) { return classOf(measure(tree)); }

tree::KvTree fewShot(int prompt, int branches, int tokens) {
  return test::levelTree({1, branches}, {prompt, tokens});
}

TEST(TreeClassifierTest, CountsAreThoseOfTheSummary) {
  for (const auto &[name, tree] : test::testTrees()) {
    SCOPED_TRACE(name);
    const tree::TreeSummary summary = tree::summarize(tree);
    const TreeFeatures features = measure(tree);
    EXPECT_EQ(features.tokens, summary.readTokens);
    EXPECT_EQ(features.pathTokens, summary.pathTokens);
    EXPECT_EQ(features.queries, summary.queries);
    EXPECT_LE(features.levels, summary.levels); // levels that nobody reads do not count
    EXPECT_GE(features.shortShare(), 0);
    EXPECT_LE(features.shortShare(), 1);
  }
}

TEST(TreeClassifierTest, BeamsHaveTheFeaturesOfTheirTree) {
  std::mt19937 random(3);
  tree::BeamTree beams = tree::BeamTree::make({16, 100, 500}).value();
  const std::vector<tree::BeamTree::History> histories{{{0, 70}, {100, 40}}, {{200, 300}}};
  ASSERT_TRUE(beams.start(histories));
  for (int step = 0; step < 12; ++step) {
    std::vector<int> parents(step % 4 == 3 ? 20 : 90);
    for (int &parent : parents)
      parent = static_cast<int>(random() % static_cast<unsigned>(beams.beams()));
    ASSERT_TRUE(beams.advance(parents));
    const TreeFeatures features = featuresOf(beams), ofTree = measure(beams.toTree());
    EXPECT_EQ(features.tokens, ofTree.tokens);
    EXPECT_EQ(features.pathTokens, ofTree.pathTokens);
    EXPECT_EQ(features.queries, ofTree.queries);
    EXPECT_EQ(features.levels, ofTree.levels);
    EXPECT_EQ(features.shortTokens, ofTree.shortTokens);
  }
}

TEST(TreeClassifierTest, AnEmptyTreeHasTheFirstClass) {
  EXPECT_EQ(classify(tree::KvTree()), TreeClass());
  tree::KvTree unread;
  ASSERT_TRUE(unread.addNode(-1, 1000));
  EXPECT_EQ(classify(unread), TreeClass());
}

TEST(TreeClassifierTest, OnlyWhatIsSeenCounts) {
  tree::KvTree tree = fewShot(1000, 8, 100);
  const TreeClass before = classify(tree);
  const int unread = tree.addNode(0, 50'000).value();
  ASSERT_TRUE(tree.addNode(unread, 5));
  EXPECT_EQ(classify(tree), before);
}

TEST(TreeClassifierTest, RoundSizesLieInTheMiddleOfTheirBucket) {
  for (const auto number : measure(fewShot(4096 - 32 * 64, 32, 64)).coordinates())
    EXPECT_LT(std::abs(number - std::round(number)), 0.3);
  EXPECT_EQ(classify(fewShot(4000, 31, 3)).queries, 5);
  EXPECT_EQ(classify(fewShot(4000, 32, 3)).queries, 5);
  EXPECT_EQ(classify(fewShot(4000, 33, 3)).queries, 5);
}

TEST(TreeClassifierTest, WorkloadsReadAsTheirFamilies) {
  const auto familyOfWorkload = [](const char *name) {
    const auto workload = workload::make(name, 0);
    EXPECT_TRUE(workload) << name;
    return familyName(familyOf(classify(workload->tree())));
  };
  EXPECT_EQ(familyOfWorkload("few_shot"), "few-shot");
  EXPECT_EQ(familyOfWorkload("few_shot:step=400"), "few-shot");
  EXPECT_EQ(familyOfWorkload("no_sharing"), "no sharing");
  EXPECT_EQ(familyOfWorkload("token_tree"), "speculative");
  EXPECT_EQ(familyOfWorkload("token_tree:tokens=256"), "speculative");
  EXPECT_EQ(familyOfWorkload("reasoning:step=1906"), "reasoning");
  EXPECT_EQ(familyOfWorkload("system_prompts"), "multi-level prompt");
  EXPECT_EQ(familyOfWorkload("multi_few_shot"), "multi-level prompt");
  EXPECT_EQ(familyOfWorkload("multi_document"), "multi-document");
  EXPECT_EQ(familyOfWorkload("grpo"), "forest");
}

/// One change of a tree as decoding makes them; a tree too small to call it a small change is left alone.
void changeALittle(tree::KvTree &tree, std::mt19937 &random) {
  std::vector<int> leaves;
  for (int node = tree.firstRoot(); node >= 0; node = tree.nextInPreorder(node))
    if (tree.nodes()[node].firstChild < 0)
      leaves.push_back(node);
  const auto pick = [&](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
  switch (pick(4)) {
  case 0:
    (void)tree.append(leaves[pick(static_cast<int>(leaves.size()))], 1);
    break;
  case 1:
    for (const int leaf : leaves)
      (void)tree.append(leaf, 1);
    break;
  case 2:
    if (tree.queries().size() > 4)
      (void)tree.removeQuery(pick(static_cast<int>(tree.queries().size())));
    break;
  default:
    (void)tree.addQuery(leaves[pick(static_cast<int>(leaves.size()))]);
  }
}

TEST(TreeClassifierTest, ASmallChangeStaysInTheClassOrGoesToANeighbour) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    tree::KvTree tree = test::randomForest(seed, {40, 200, 60});
    if (measure(tree).tokens < 500 || tree.queries().size() < 5)
      continue;
    for (int change = 0; change < 50; ++change) {
      const TreeClass before = classify(tree);
      changeALittle(tree, random);
      const TreeClass after = classify(tree);
      ASSERT_TRUE(areNeighbours(before, after)) << before.text() << " " << after.text();
    }
  }
}

// All branches reach the length of a tile in one step; that must not be a jump.
TEST(TreeClassifierTest, ShortNodesBecomeLongGradually) {
  int last = 4;
  for (int tokens = 20; tokens < 120; ++tokens) {
    const int now = classify(fewShot(10, 64, tokens)).shorts;
    EXPECT_LE(now, last);
    EXPECT_GE(now, last - 1) << tokens;
    last = now;
  }
  EXPECT_EQ(last, 0);
}

TEST(TreeClassifierTest, AGrowingTreeWalksThroughClassesInOrder) {
  for (const char *name : {"few_shot", "no_sharing", "multi_document", "system_prompts"}) {
    SCOPED_TRACE(name);
    auto workload = workload::make(name, 1).value();
    TreeClass last = classify(workload.tree());
    int changes = 0;
    bool areNodesLong = false; // the branches' share grows as they do, until they are no longer short
    while (workload.step() < workload.steps()) {
      ASSERT_TRUE(workload.next().value());
      const TreeClass now = classify(workload.tree());
      EXPECT_GE(now.tokens, last.tokens);
      EXPECT_LE(now.sharing, last.sharing); // branches gain tokens that one query sees
      areNodesLong |= now.shorts < last.shorts;
      EXPECT_FALSE(areNodesLong && now.shorts > last.shorts);
      EXPECT_EQ(now.queries, last.queries);
      EXPECT_EQ(now.depth, last.depth);
      EXPECT_TRUE(areNeighbours(last, now));
      changes += now != last;
      last = now;
    }
    EXPECT_LE(changes, 8); // a number goes one way only, so it passes each bucket once
  }
}

TEST(ClassFollowerTest, BeginsWithThePlainClass) {
  ClassFollower follower;
  const TreeFeatures features = measure(fewShot(4000, 20, 10));
  EXPECT_EQ(follower.follow(features), classOf(features));
}

// 22 and 23 queries are in different buckets: requests that come and go would change the config each time.
TEST(ClassFollowerTest, ARunAtAnEdgeStaysWhereItIs) {
  ASSERT_NE(classify(fewShot(4000, 22, 10)), classify(fewShot(4000, 23, 10)));
  ClassFollower follower;
  const TreeClass first = follower.follow(measure(fewShot(4000, 22, 10)));
  for (int step = 0; step < 100; ++step)
    EXPECT_EQ(follower.follow(measure(fewShot(4000, 20 + step % 6, 10 + step % 3))), first);
}

TEST(ClassFollowerTest, ARunThatLeavesArrives) {
  ClassFollower follower;
  follower.follow(measure(fewShot(4000, 8, 10)));
  const TreeFeatures features = measure(fewShot(4000, 64, 1));
  EXPECT_EQ(follower.follow(features), classOf(features));
  follower.restart();
  const TreeFeatures edge = measure(fewShot(4000, 23, 10));
  EXPECT_EQ(follower.follow(edge), classOf(edge));
}

TEST(ClassFollowerTest, ADecodeRunKeepsAConfigForManySteps) {
  for (const char *name : {"few_shot", "grpo", "beam_search", "reasoning", "system_prompts", "mixture"}) {
    SCOPED_TRACE(name);
    auto workload = workload::make(name, 3).value();
    TreeClassifier classifier;
    ClassFollower follower;
    TreeClass last = follower.follow(classifier.measure(workload.tree()));
    int changes = 0, back = 0;
    TreeClass beforeLast = last;
    while (workload.step() < workload.steps()) {
      ASSERT_TRUE(workload.next().value());
      const TreeClass now = follower.follow(classifier.measure(workload.tree()));
      if (now == last)
        continue;
      ++changes;
      back += now == beforeLast;
      beforeLast = last;
      last = now;
    }
    // A tree of thoughts forks every 60 steps and is another tree then: those changes are to be seen.
    EXPECT_LE(25 * changes, workload.steps()) << changes << " changes";
    EXPECT_LE(10 * back, std::max(changes, 10)) << back << " changes were taken back at once";
  }
}

} // namespace
} // namespace deft::config_cache
