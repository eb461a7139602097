#include "runtime/plan/PriceCut.h"

#include "compiler/kernels/Sm90.h"
#include "runtime/plan/Partitions.h"
#include "tests/unit/runtime/plan/PlanTesting.h"

#include <random>

namespace deft::plan {
namespace {

config::Config wideConfig(spec::Partition partition = spec::Partition::Auto) {
  config::Config config;
  config.partition = partition;
  config.phases = {{"tiles", -1, config::Family::Sm90, 128, 64, 4, kernels::kSm90Warps}};
  return config;
}

CostModel modelOf(const VariantFacts &facts) {
  CostModel model;
  model.set(facts, wideConfig(), 132);
  return model;
}

/// Tiles of one run each: queries and tokens.
TileList tilesOf(const std::vector<std::pair<int, int>> &tiles) {
  TileList list;
  for (const auto &[queries, tokens] : tiles)
    list.addTile(Segment{0, 0, tokens, 0, queries});
  return list;
}

int itemsOf(const TileList &list) {
  int items = 0;
  for (const Tile &tile : list.tiles)
    items += tile.chunkTokens > 0 ? (tile.tokens - 1) / tile.chunkTokens + 1 : 1;
  return items;
}

double dearestOf(const TileList &list, const CostModel &model) {
  double dearest = 0;
  for (const Tile &tile : list.tiles)
    dearest =
        std::max(dearest, model.leastUnitUs(tile.queryCount, tile.chunkTokens > 0
                                                                 ? std::min(tile.chunkTokens, tile.tokens)
                                                                 : tile.tokens));
  return dearest;
}

TEST(PriceCutTest, TilesOfManyRowsGetShorterItems) {
  const CostModel model = modelOf({16, 1});
  TileList list = tilesOf({{8, 64000}, {4, 64000}}); // 128 rows, 64 rows
  PriceCut cut;
  cut.set(model, 30, list);
  EXPECT_LT(list.tiles[0].chunkTokens, 0.8 * list.tiles[1].chunkTokens);
  EXPECT_LE(itemsOf(list), 30);
  EXPECT_GE(itemsOf(list), 29);
  PriceCut::clear(list);
  EXPECT_EQ(list.tiles[0].chunkTokens, 0);
  EXPECT_EQ(list.tiles[1].chunkTokens, 0);
}

TEST(PriceCutTest, TilesThatAreEnoughAreNotCut) {
  const CostModel model = modelOf({16, 1});
  TileList list = tilesOf({{8, 1000}, {4, 777}, {1, 5}});
  PriceCut cut;
  EXPECT_EQ(cut.set(model, 3, list), 1008);
  EXPECT_EQ(itemsOf(list), 3);
  EXPECT_EQ(cut.set(model, 2, list), 1008);
  EXPECT_EQ(itemsOf(list), 3);
  TileList none;
  EXPECT_GT(cut.set(model, 10, none), 0);
}

TEST(PriceCutTest, ItemsAreAsManyAsFitAndAboutEqual) {
  std::mt19937_64 random(7);
  PriceCut cut;
  for (int round = 0; round < 300; ++round) {
    const int ratio = std::array{1, 4, 16}[random() % 3];
    const CostModel model = modelOf({ratio, 8});
    std::vector<std::pair<int, int>> tiles(1 + random() % 20);
    for (auto &[queries, tokens] : tiles) {
      queries = 1 + static_cast<int>(random() % static_cast<std::uint64_t>(model.queriesPerTile()));
      tokens = 1 + static_cast<int>(random() % 30000);
    }
    TileList list = tilesOf(tiles);
    const double whole = dearestOf(list, model);
    const int items = 20 + static_cast<int>(random() % 100);
    const int longest = cut.set(model, items, list);
    EXPECT_LE(itemsOf(list), items);
    EXPECT_LE(dearestOf(list, model), whole);
    for (const Tile &tile : list.tiles)
      EXPECT_LE(tile.chunkTokens == 0 ? tile.tokens : 0, longest);
    // What would be left for one item more: a step of rounding, and the start of an item.
    double all = 0;
    for (const Tile &tile : list.tiles)
      all += model.leastUnitUs(tile.queryCount, tile.tokens);
    EXPECT_LT(dearestOf(list, model), 2 * (all / items) + 8);
  }
}

/// Also paths, which are cut by other code.
TEST(PriceCutTest, PlansThatAreCutByPriceAreRight) {
  int byPrice = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    std::mt19937_64 random(seed);
    tree::KvTree tree;
    ASSERT_TRUE(tree.addNode(-1, 30000));
    for (int i = 1; i < 120; ++i) {
      const int parent = random() % 3 ? 0 : static_cast<int>(random() % static_cast<std::uint64_t>(i));
      ASSERT_TRUE(tree.addNode(parent, 1 + static_cast<int>(random() % 4000)));
      ASSERT_TRUE(tree.addQuery(i));
    }
    tree = placed(std::move(tree));
    for (const auto &[ratio, kvHeads] : {std::pair{8, 8}, {16, 1}}) {
      const VariantFacts facts{ratio, kvHeads};
      Planner planner;
      Plan plan;
      // Twice: when `auto` chooses, and as it remembers what it chose.
      for (int i = 0; i < 2; ++i) {
        ASSERT_TRUE(planner.make(tree, facts, wideConfig(), 132, plan));
        const auto verified = verify(plan, tree, facts, wideConfig());
        ASSERT_TRUE(verified) << verified.error().message;
        const int waves = planner.lastChoice().waves;
        byPrice += waves > 0;
        EXPECT_LE(waves > 0 ? static_cast<int>(plan.items.size()) * kvHeads : 0, waves * 132);
      }
    }
  }
  EXPECT_GT(byPrice, 20);
}

} // namespace
} // namespace deft::plan
