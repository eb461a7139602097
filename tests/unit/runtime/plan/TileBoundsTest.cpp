#include "runtime/plan/TileBounds.h"

#include "runtime/plan/Greedy.h"
#include "runtime/plan/Items.h"
#include "tests/unit/runtime/plan/PlanTesting.h"

#include <array>
#include <functional>

namespace deft::plan {
namespace {

using tree::KvTree;

struct Case {
  VariantFacts facts;
  config::Config config;
};

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (const int ratio : {1, 4, 16}) {
    cases.push_back({{ratio, 8}, makeConfig(0, {64, 16})});
    cases.push_back({{ratio, 1}, makeConfig(0, {128})}); // whose warps are two groups
    cases.back().config.phases = {
        {.name = "tiles", .family = config::Family::Sm90, .tileQ = 128, .stages = 4, .warps = 12}};
  }
  return cases;
}

/// The plan of tiles, as far as prices go.
Plan planOf(const TreeView &view, const TileList &tiles, int chunk, const Case &of) {
  ItemCutter cutter;
  PhaseSorter sorter;
  Plan plan;
  plan.callerIndex = view.callerIndex;
  plan.queryPos = view.queryPos;
  plan.readTokens = view.readTokens;
  EXPECT_TRUE(cutter.cut(view, tiles, chunk, true, plan));
  sorter.sort(of.config, of.facts.ratio, cutter.longest(), plan);
  return plan;
}

/// Tiles as each partition makes them.
std::vector<std::pair<std::string, TileList>> tilesOf(TreeView &view, const CostModel &model,
                                                      const Case &of) {
  std::vector<std::pair<std::string, TileList>> lists(6);
  PartitionScratch scratch;
  const int width = model.queriesPerTile();
  lists[0].first = "query";
  makeQueryTiles(view, scratch, lists[0].second);
  lists[1].first = "node_chunk";
  makeNodeTiles(view, width, {}, scratch, lists[1].second);
  lists[2].first = "flatten";
  makeFlattenTiles(view, width, 64, scratch, lists[2].second);
  lists[3].first = "cascade";
  makeCascadeTiles(view, width, 0, of.facts, {}, 132, scratch, lists[3].second);
  lists[4].first = "union";
  const std::vector<TilePrice> prices{{std::max(width / 4, 1), 1.0}, {width, 2.0}};
  makeUnionTiles(view, prices, 100, scratch, lists[4].second);
  lists[5].first = "greedy"; // last, for it may order the view anew
  GreedyPartition greedy;
  greedy.assign(view, model, 0);
  greedy.makeTiles(view, width, scratch, lists[5].second);
  return lists;
}

void forEachTree(const std::function<void(const KvTree &)> &judge) {
  std::vector<std::pair<std::string, KvTree>> trees = test::edgeTrees();
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    trees.emplace_back("seed " + std::to_string(seed), test::randomForest(seed, {60, 400, 80}));
    trees.emplace_back("causal, seed " + std::to_string(seed), test::causalForest(seed));
  }
  trees.emplace_back("few-shot", test::levelTree({1, 20}, {4000, 200}));
  trees.emplace_back("deep", test::levelTree({1, 2, 4, 8, 16, 32, 64}, std::vector<int>(7, 16)));
  for (auto &[name, tree] : trees) {
    SCOPED_TRACE(name);
    ASSERT_NO_FATAL_FAILURE(judge(placed(std::move(tree))));
  }
}

TEST(TileBoundsTest, NoPlanIsCheaper) {
  forEachTree([](const KvTree &tree) {
    for (const Case &of : cases()) {
      CostModel model;
      model.set(of.facts, of.config, 132);
      TreeView view;
      view.build(tree);
      const auto lists = tilesOf(view, model, of);
      for (const auto &[name, tiles] : lists) {
        if (name != "greedy") // its tiles are of the order that it leaves
          view.build(tree);
        else
          GreedyPartition().assign(view, model, 0);
        TileBounds bounds;
        bounds.set(tiles, view, model);
        for (const int chunk : {16, 48, 128, 512, 1 << 20}) {
          const Plan plan = planOf(view, tiles, chunk, of);
          const LowerBound least = bounds.least(chunk);
          SCOPED_TRACE(name + ", chunk " + std::to_string(chunk) + ", ratio " +
                       std::to_string(of.facts.ratio));
          EXPECT_LE(least.us, model.estimate(plan).microseconds * (1 + 1e-9));
          EXPECT_LE(bounds.leastRank(chunk),
                    rankOf(model.estimate(plan).microseconds, of.config.cost, plan) * (1 + 1e-9));
          EXPECT_TRUE(!least.isMerged || plan.partialSlots > 0);
        }
      }
    }
  });
}

TEST(TileBoundsTest, ChunksThatCutAlikeGiveEqualItems) {
  constexpr std::array<int, 7> kChunks{16, 48, 128, 192, 512, 768, 1 << 20};
  int alike = 0, different = 0;
  forEachTree([&](const KvTree &tree) {
    const Case of = cases().front();
    CostModel model;
    model.set(of.facts, of.config, 132);
    TreeView view;
    view.build(tree);
    const TileList tiles = tilesOf(view, model, of)[4].second;
    view.build(tree);
    TileBounds bounds;
    bounds.set(tiles, view, model);
    for (std::size_t i = 1; i < kChunks.size(); ++i) {
      const std::vector<abi::Item> items = planOf(view, tiles, kChunks[i], of).items,
                                   before = planOf(view, tiles, kChunks[i - 1], of).items;
      const bool areEqual = std::equal(items.begin(), items.end(), before.begin(), before.end(),
                                       [](const abi::Item &a, const abi::Item &b) {
                                         return a.queryBegin == b.queryBegin && a.tokens == b.tokens &&
                                                a.runBegin == b.runBegin;
                                       });
      EXPECT_EQ(bounds.areCutAlike(kChunks[i], kChunks[i - 1]), areEqual);
      (areEqual ? alike : different) += 1;
    }
  });
  EXPECT_GT(alike, 100);
  EXPECT_GT(different, 100);
}

/// Else most plans would be made all the same: of tiles that are one item each all is known.
TEST(TileBoundsTest, TilesThatAreNotCutHaveTheirPrice) {
  const KvTree tree = placed(test::levelTree({1, 64}, {256, 32}));
  for (const Case &of : cases()) {
    CostModel model;
    model.set(of.facts, of.config, 132);
    TreeView view;
    view.build(tree);
    TileList tiles;
    PartitionScratch scratch;
    const std::vector<TilePrice> prices{{model.queriesPerTile(), 1.0}};
    makeUnionTiles(view, prices, 1, scratch, tiles);
    TileBounds bounds;
    bounds.set(tiles, view, model);
    const Plan plan = planOf(view, tiles, 1 << 20, of);
    EXPECT_NEAR(bounds.leastRank(1 << 20), model.estimate(plan).microseconds, 1e-6);
  }
}

} // namespace
} // namespace deft::plan
