#include "runtime/plan/Paths.h"

#include "runtime/tree/CachePlacement.h"
#include "tests/unit/runtime/plan/PlanTesting.h"

#include <gtest/gtest.h>

namespace deft::plan {
namespace {

/// Where each position of a query's path lies, by the tree's own links: location and depth.
std::vector<std::pair<int, int>> placesByLinks(const tree::KvTree &tree, int query) {
  const tree::Query &q = tree.queries()[static_cast<std::size_t>(query)];
  std::vector<std::pair<int, int>> places(static_cast<std::size_t>(tree.pathTokens(q)));
  int seen = tree.seenTokens(q);
  for (int index = q.node; index >= 0;) {
    const tree::Node &node = tree.nodes()[static_cast<std::size_t>(index)];
    for (int t = 0; t < seen; ++t)
      places[static_cast<std::size_t>(node.position + t)] = {node.location + t, node.depth};
    index = node.parent;
    seen = index >= 0 ? tree.nodes()[static_cast<std::size_t>(index)].tokens : 0;
  }
  return places;
}

void expectPathsOfTree(const Plan &plan, const tree::KvTree &tree) {
  Paths paths;
  paths.read(plan);
  ASSERT_EQ(paths.queryCount(), static_cast<int>(tree.queries().size()));
  int longest = 0;
  for (int query = 0; query < paths.queryCount(); ++query) {
    std::vector<std::pair<int, int>> places;
    for (const PathStretch &stretch : paths.of(query)) {
      ASSERT_EQ(stretch.position, static_cast<int>(places.size())) << "query " << query;
      for (int t = 0; t < stretch.tokens; ++t)
        places.emplace_back(stretch.location + t, stretch.depth);
    }
    EXPECT_EQ(places, placesByLinks(tree, query)) << "query " << query;
    EXPECT_EQ(paths.queryPos(query), static_cast<int>(places.size()) - 1);
    longest = std::max(longest, static_cast<int>(places.size()));
  }
  EXPECT_EQ(paths.longest(), longest);
}

TEST(PathsTest, AreThoseOfTheTreeWhateverThePartition) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    tree::KvTree tree = seed % 2 ? test::randomForest(seed) : test::causalForest(seed);
    ASSERT_TRUE(tree::placeInCache(tree, {.order = tree::PlacementOrder::Scattered, .seed = seed}));
    for (const auto partition : {spec::Partition::Query, spec::Partition::Node, spec::Partition::NodeChunk,
                                 spec::Partition::Flatten, spec::Partition::Union, spec::Partition::Greedy}) {
      config::Config config;
      config.partition = partition;
      config.chunkTokens = seed % 3 ? 64 : 0;
      config.phases.resize(1);
      const auto made = makePlan(tree, VariantFacts{4, 1}, config, 4);
      ASSERT_TRUE(made);
      expectPathsOfTree(*made, tree);
    }
  }
}

TEST(PathsTest, OfAnotherPlanTakeThePlaceOfTheFirst) {
  Paths paths;
  for (const int tokens : {90, 7}) {
    tree::KvTree tree = test::levelTree({1, 2}, {tokens, 3});
    ASSERT_TRUE(tree::placeInCache(tree, {}));
    config::Config config;
    config.phases.resize(1);
    const auto made = makePlan(tree, VariantFacts{4, 1}, config, 4);
    ASSERT_TRUE(made);
    paths.read(*made);
    EXPECT_EQ(paths.longest(), tokens + 3);
    EXPECT_EQ(paths.of(1).back().position + paths.of(1).back().tokens, tokens + 3);
  }
}

} // namespace
} // namespace deft::plan
