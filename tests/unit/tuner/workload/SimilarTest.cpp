#include "tuner/workload/Similar.h"

#include "runtime/config_cache/TreeClassifier.h"
#include "runtime/tree/TreeFile.h"
#include "tests/support/Forest.h"
#include "tuner/workload/Families.h"

#include <gtest/gtest.h>

namespace deft::workload {
namespace {

TEST(SimilarTest, TheSeedDecides) {
  const tree::KvTree tree = test::levelTree({1, 4, 64}, {1000, 200, 40});
  EXPECT_EQ(tree::formatTree(similarTree(tree, 3)), tree::formatTree(similarTree(tree, 3)));
  EXPECT_NE(tree::formatTree(similarTree(tree, 3)), tree::formatTree(similarTree(tree, 4)));
}

TEST(SimilarTest, ItIsAboutAsLargeWithSomeLeavesFewer) {
  const tree::KvTree tree = test::levelTree({1, 4, 64}, {1000, 200, 40});
  int fewer = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const tree::KvTree similar = similarTree(tree, seed);
    EXPECT_NEAR(static_cast<double>(similar.tokens()) / static_cast<double>(tree.tokens()), 1, 0.3) << seed;
    EXPECT_LE(similar.queries().size(), 64U);
    EXPECT_GE(similar.queries().size(), 48U) << seed;
    fewer += similar.queries().size() < 64;
  }
  EXPECT_GT(fewer, 10);
}

TEST(SimilarTest, FarOnesDifferByMore) {
  const tree::KvTree tree = test::levelTree({1, 4, 64}, {1000, 200, 40});
  double least = 1, most = 1;
  std::size_t fewest = 64;
  for (std::uint64_t i = 0; i < 20; ++i) {
    const tree::KvTree far = similarTree(tree, kFarSeeds + i);
    const double ratio = static_cast<double>(far.tokens()) / static_cast<double>(tree.tokens());
    least = std::min(least, ratio);
    most = std::max(most, ratio);
    fewest = std::min(fewest, far.queries().size());
  }
  EXPECT_LT(least, 0.75);
  EXPECT_GT(most, 1.2);
  EXPECT_LT(fewest, 52U);
  EXPECT_GT(fewest, 32U);
}

TEST(SimilarTest, NearAndFarSeedsAlternate) {
  EXPECT_EQ(mixedSeed(2), 1U);
  EXPECT_EQ(mixedSeed(3), kFarSeeds + 1);
  EXPECT_EQ(mixedSeed(4), 2U);
}

TEST(SimilarTest, ATokenTreeStaysOneAndQueriesStayInTheirNodes) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const tree::KvTree tree = test::randomForest(seed), similar = similarTree(tree, seed);
    for (const tree::Query &query : similar.queries()) {
      const tree::Node &node = similar.nodes()[static_cast<std::size_t>(query.node)];
      EXPECT_LE(query.position, node.tokens) << seed;
    }
  }
  const tree::KvTree tokens = similarTree(test::levelTree({1, 8, 16}, {512, 1, 1}), 5);
  for (std::size_t i = 1; i < tokens.nodes().size(); ++i)
    EXPECT_EQ(tokens.nodes()[i].tokens, 1);
}

TEST(SimilarTest, MostTreesOfTheFamiliesKeepTheirClassAndManyFarOnes) {
  config_cache::TreeClassifier classifier;
  int kept = 0, keptFar = 0, all = 0;
  for (const char *family : {"few_shot", "reasoning", "speculative", "no_sharing"}) {
    const auto trees = familyTrees(family);
    for (const FamilyTree &tree : *trees)
      for (std::uint64_t seed = 1; seed <= 3; ++seed, ++all) {
        kept += classifier.classify(similarTree(tree.tree, seed)) == classifier.classify(tree.tree);
        keptFar +=
            classifier.classify(similarTree(tree.tree, kFarSeeds + seed)) == classifier.classify(tree.tree);
      }
  }
  EXPECT_GT(kept, 3 * all / 5) << all;
  EXPECT_GT(keptFar, all / 4) << all;
}

} // namespace
} // namespace deft::workload
