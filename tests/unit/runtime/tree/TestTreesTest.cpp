#include "tests/support/TestTrees.h"

#include "runtime/tree/TreeFile.h"
#include "runtime/tree/TreeSummary.h"
#include "tests/support/Forest.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace deft::tree {
namespace {

TEST(TestTreesTest, TheFilesAreWhatDeftMakeTreesWrites) {
  const std::filesystem::path folder = DEFT_TEST_TREES;
  std::size_t files = 0;
  for (const auto &entry : std::filesystem::directory_iterator(folder))
    files += entry.path().extension() == ".json";
  const auto trees = test::testTrees();
  EXPECT_EQ(files, trees.size());
  EXPECT_EQ(trees.size(), 20u);
  for (const auto &[name, tree] : trees) {
    const auto kept = readTreeFile((folder / (name + ".json")).string());
    ASSERT_TRUE(kept) << kept.error().message;
    EXPECT_EQ(formatTree(*kept), formatTree(tree)) << name;
  }
}

TEST(TreeSummaryTest, CountsWhatIsReadAndByHowMany) {
  KvTree tree = test::levelTree({1, 4}, {100, 10});
  (void)tree.addNode(-1, 50); // nobody reads it
  (void)tree.addNode(-1, 30);
  (void)tree.addQuery(6, 20); // reads two thirds of it
  const TreeSummary summary = summarize(tree);
  EXPECT_EQ(summary.nodes, 7);
  EXPECT_EQ(summary.roots, 3);
  EXPECT_EQ(summary.levels, 2);
  EXPECT_EQ(summary.queries, 5);
  EXPECT_EQ(summary.tokens, 220);
  EXPECT_EQ(summary.readTokens, 160);
  EXPECT_EQ(summary.pathTokens, 4 * 110 + 20);
  EXPECT_DOUBLE_EQ(summary.sharing(), 460.0 / 160);
  EXPECT_EQ(summarize(KvTree()).sharing(), 0);
}

} // namespace
} // namespace deft::tree
