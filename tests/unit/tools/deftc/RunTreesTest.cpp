#include "tools/deftc/RunTrees.h"

#include "runtime/plan/Planner.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace deft::cli {
namespace {

/// No two living nodes claim a place, and all places lie in the table.
void expectApart(const PlacedTree &placed) {
  std::vector<std::pair<int, int>> stretches;
  for (const tree::Node &node : placed.tree().nodes())
    if (node.isAlive && node.tokens > 0)
      stretches.emplace_back(node.location, node.location + node.tokens);
  std::sort(stretches.begin(), stretches.end());
  for (std::size_t i = 0; i < stretches.size(); ++i) {
    EXPECT_LE(stretches[i].second, placed.tableTokens());
    if (i > 0) {
      EXPECT_LE(stretches[i - 1].second, stretches[i].first);
    }
  }
}

TEST(PlacedTreeTest, FollowsEveryWorkload) {
  const auto all = workload::list();
  ASSERT_TRUE(all);
  ASSERT_GE(all->size(), 8u);
  for (const workload::Description &description : *all) {
    SCOPED_TRACE(description.name);
    auto steps = TreeSteps::ofWorkload(description.name, 7, "");
    ASSERT_TRUE(steps) << steps.error().message;
    PlacedTree placed(steps->tree(), 5);
    for (int i = 0; i < 40; ++i) {
      expectApart(placed);
      for (int query = 0; query < static_cast<int>(placed.tree().queries().size()); ++query)
        ASSERT_EQ(placed.tree().pathTokens(placed.tree().queries()[query]),
                  steps->tree().pathTokens(steps->tree().queries()[query]));
      const auto moved = steps->next();
      ASSERT_TRUE(moved) << moved.error().message;
      if (!*moved)
        break;
      const auto followed = placed.follow(steps->edits(), steps->tree());
      ASSERT_TRUE(followed) << followed.error().message;
    }
  }
}

TEST(PlacedTreeTest, BranchesThatOnlyGrowAreAdvanced) {
  auto steps = TreeSteps::ofWorkload("few_shot:prompt=200,branches=4", 1, "");
  ASSERT_TRUE(steps) << steps.error().message;
  PlacedTree placed(steps->tree());
  for (int i = 0; i < 10; ++i) {
    const std::uint64_t before = placed.tree().structureGeneration();
    ASSERT_TRUE(steps->next());
    ASSERT_TRUE(placed.follow(steps->edits(), steps->tree()));
    EXPECT_EQ(placed.tree().structureGeneration(), before);
  }
}

} // namespace
} // namespace deft::cli
