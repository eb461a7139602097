/// From tiles to the work list, by hand: whole plans are held against their trees by Verify.

#include "runtime/plan/Items.h"

#include "tests/support/LatentTensors.h"
#include "tests/unit/runtime/plan/PlanTesting.h"

#include <map>
#include <random>
#include <set>

namespace deft::plan {
namespace {

using testing::ElementsAre;

/// Tiles of one tree, each segment one of them, cut.
struct Cut {
  TreeView view;
  TileList tiles;
  Plan plan;
  ItemCutter cutter;

  explicit Cut(const tree::KvTree &tree, const Tile &like = {}) {
    view.build(tree);
    for (const Segment &segment : view.segments)
      tiles.addTile(segment, like);
  }
  support::Result<void> cut(int chunk, bool mayWriteOutput = true) {
    return cutter.cut(view, tiles, chunk, mayWriteOutput, plan);
  }
  std::vector<int> tokens() const {
    std::vector<int> tokens;
    for (const abi::Item &item : plan.items)
      tokens.push_back(item.tokens);
    return tokens;
  }
};

TEST(ItemsTest, TilesAreCutIntoEqualChunksOrFullOnes) {
  const tree::KvTree tree = test::levelTree({1}, {300});
  Cut even(tree), full(tree, {.isEven = false}), own(tree, {.chunkTokens = 160});
  for (Cut *one : {&even, &full, &own})
    ASSERT_TRUE(one->cut(128));
  EXPECT_THAT(even.tokens(), ElementsAre(112, 112, 76));
  EXPECT_THAT(full.tokens(), ElementsAre(128, 128, 44));
  EXPECT_THAT(own.tokens(), ElementsAre(160, 140));
  EXPECT_EQ(even.cutter.longest(), 112);
  ASSERT_TRUE(even.cut(300));
  EXPECT_THAT(even.tokens(), ElementsAre(300));
}

/// Three queries read 100 common tokens and 10 of their own; nobody but the fourth reads its 5.
TEST(ItemsTest, RowsOfOneItemAreWrittenAndAllOthersMerged) {
  tree::KvTree tree = test::levelTree({1, 3}, {100, 10});
  ASSERT_TRUE(tree.addQuery(tree.addNode(-1, 5).value()));
  Cut cut(tree);
  ASSERT_TRUE(cut.cut(64));                // the prompt: 64 and 36 tokens
  std::map<int, std::multiset<int>> slots; // of each query, by who writes there
  for (const abi::Item &item : cut.plan.items)
    for (int q = 0; q < item.queryCount; ++q)
      if (item.partialBegin >= 0)
        slots[item.queryBegin + q].insert(item.partialBegin + q);
  EXPECT_EQ(slots.size(), 3U);
  EXPECT_EQ(cut.plan.partialSlots, 9);
  EXPECT_THAT(cut.plan.mergeQuery, ElementsAre(0, 1, 2));
  EXPECT_THAT(cut.plan.mergeBegin, ElementsAre(0, 3, 6, 9));
  std::set<int> all;
  for (int q = 0; q < 3; ++q) {
    const std::vector<int> merged(cut.plan.mergeSlot.begin() + 3 * q, cut.plan.mergeSlot.begin() + 3 * q + 3);
    EXPECT_EQ(std::multiset<int>(merged.begin(), merged.end()), slots[q]);
    all.insert(merged.begin(), merged.end());
  }
  EXPECT_EQ(all.size(), 9U) << "nobody writes where another does";
  ASSERT_TRUE(cut.cut(64, /*mayWriteOutput=*/false));
  EXPECT_EQ(cut.plan.partialSlots, 10);
  EXPECT_THAT(cut.plan.mergeQuery, ElementsAre(0, 1, 2, 3));
}

/// Somebody has to write the zeros of a query that sees nothing.
TEST(ItemsTest, AQueryWithoutItemsIsMergedFromNothing) {
  tree::KvTree tree = test::levelTree({1}, {20});
  const int empty = tree.addNode(-1, 0).value();
  ASSERT_TRUE(tree.addQuery(empty));
  Cut cut(tree);
  ASSERT_TRUE(cut.cut(64));
  EXPECT_THAT(cut.plan.mergeQuery, ElementsAre(1));
  EXPECT_THAT(cut.plan.mergeBegin, ElementsAre(0, 0));
  EXPECT_EQ(cut.plan.partialSlots, 0);
}

TEST(ItemsTest, MorePartialsThanCanBePlannedAreAnError) {
  constexpr int kQueries = 1 << 14, kItems = ItemCutter::kMostPartials / kQueries + 1;
  tree::KvTree tree;
  ASSERT_TRUE(tree.addNode(-1, kItems * kChunkStep));
  for (int query = 0; query < kQueries; ++query)
    ASSERT_TRUE(tree.addQuery(0));
  Cut cut(tree);
  const auto done = cut.cut(kChunkStep);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "the plan needs " + std::to_string((1 << 28) + kQueries) +
                                      " partials, at most 268435456 can be planned");
}

TEST(ItemsTest, PhasesHaveTheirItemsHeaviestFirstAndTiesStayInOrder) {
  std::mt19937 random(7);
  const config::Config config = makeConfig(0, {128, 64, 16});
  constexpr int kRatio = 4;
  const auto phaseOf = [](const abi::Item &item) {
    return item.queryCount * kRatio > 64 ? 0 : item.queryCount * kRatio > 16 ? 1 : 2;
  };
  PhaseSorter sorter;
  for (int turn = 0; turn < 60; ++turn) {
    Plan plan;
    int longest = 0;
    const int mostTokens = turn % 3 == 0 ? 4 : turn % 3 == 1 ? 3000 : 1 << 20;
    for (unsigned i = 0; i < random() % 500; ++i) {
      abi::Item item{};
      item.queryBegin = static_cast<int>(i); // tells it
      item.queryCount = static_cast<int>(1 + random() % (128 / kRatio));
      item.tokens = static_cast<int>(random() % static_cast<unsigned>(mostTokens));
      longest = std::max(longest, item.tokens);
      plan.items.push_back(item);
      plan.tails.push_back({0, static_cast<int>(i), static_cast<int>(i)});
    }
    std::vector<abi::Item> expected = plan.items;
    std::stable_sort(expected.begin(), expected.end(), [&](const abi::Item &a, const abi::Item &b) {
      return std::pair(phaseOf(a), -a.tokens) < std::pair(phaseOf(b), -b.tokens);
    });
    sorter.sort(config, kRatio, longest, plan);
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_EQ(plan.items[i].queryBegin, expected[i].queryBegin) << "turn " << turn << ", item " << i;
    for (const Plan::Tail &tail : plan.tails) // they follow
      ASSERT_EQ(plan.items[static_cast<std::size_t>(tail.item)].queryBegin, tail.run) << "turn " << turn;
    for (int phase = 0; phase < 3; ++phase)
      EXPECT_EQ(plan.phases[static_cast<std::size_t>(phase)].itemCount,
                std::count_if(expected.begin(), expected.end(),
                              [&](const abi::Item &item) { return phaseOf(item) == phase; }));
  }
}

TEST(ItemsTest, ChosenChunksFillTheMachineAndNoMore) {
  const auto chosen = [](const std::vector<int> &tokens, int blocks, int queries = 1) {
    std::vector<Tile> tiles;
    for (const int count : tokens)
      tiles.push_back({0, queries, 0, 1, count});
    return chooseChunkTokens(tiles, {4, 1}, {}, blocks);
  };
  EXPECT_EQ(chosen({8192}, 1), 8192) << "nobody else would take a part";
  EXPECT_EQ(chosen({8192}, 8), 1024);
  EXPECT_EQ(chosen({}, 8), 64);
  EXPECT_EQ(chosen({5}, 1000), 64) << "what is short is one item";
  EXPECT_EQ(chosen(std::vector<int>(8, 1000), 8), 1008) << "each block has its tile already";
  for (const int tokens : {100, 999, 5000, 70001})
    for (const int blocks : {1, 3, 16, 132}) {
      const int chunk = chosen({tokens, 50, 17}, blocks);
      EXPECT_EQ(chunk % kChunkStep, 0);
      EXPECT_GE(chunk, 64);
      EXPECT_LE(chunk, std::max(64, tokens + kChunkStep - 1));
    }
}

/// A token of a latent cache takes longer, so more partials are worth a machine that is full.
TEST(ItemsTest, ChunksOfLatentCachesGoByTheirOwnPrices) {
  VariantFacts latent{16, 1, test::latentTensors()}, ordinary = latent;
  ordinary.tensors.valueInKey = false;
  const std::vector<Tile> tiles(16, {0, 4, 0, 1, 9216}); // 64 requests below 8,192 tokens
  EXPECT_EQ(chooseChunkTokens(tiles, latent, {}, 132), 9216 / 8) << "128 items";
  EXPECT_GT(chooseChunkTokens(tiles, ordinary, {}, 132), 9216 / 8);
}

/// Some tiles of a variant on a machine.
struct TilesCase {
  int tiles, tokens, queries;
  bool isLatent;
  int blocks, chunk; ///< its chunk by the prices with which entries were tuned

  int chosen(const config::CostCoefficients &cost) const {
    const VariantFacts facts = isLatent ? VariantFacts{16, 1, test::latentTensors()} : VariantFacts{4, 8};
    return chooseChunkTokens(std::vector<Tile>(static_cast<std::size_t>(tiles), {0, queries, 0, 1, tokens}),
                             facts, cost, blocks);
  }
};
constexpr TilesCase kTilesCases[] = {
    {1, 8192, 1, false, 132, 512},  {40, 1500, 8, false, 264, 1504},  {20, 3000, 16, false, 132, 1216},
    {9, 600, 32, false, 132, 608},  {4, 20000, 32, false, 264, 2512}, {64, 2048, 4, true, 132, 1024},
    {16, 9216, 4, true, 132, 1152}, {7, 1200, 1, true, 132, 176},     {16, 5000, 2, true, 132, 640}};

TEST(ItemsTest, ByTheDefaultPricesChunksAreThoseOfTheTunedEntries) {
  for (const TilesCase &of : kTilesCases)
    EXPECT_EQ(of.chosen({}), of.chunk) << of.tiles << " tiles of " << of.tokens;
}

TEST(ItemsTest, EveryPriceOfChunksMatters) {
  using Cost = config::CostCoefficients;
  for (double Cost::*price : {&Cost::chunkTokenUs, &Cost::chunkItemUs, &Cost::chunkMergeUs,
                              &Cost::chunkPartialGBs, &Cost::latentTokenUs, &Cost::latentItemUs}) {
    const auto matters = [&](double factor) {
      Cost other;
      other.*price *= factor;
      return std::any_of(std::begin(kTilesCases), std::end(kTilesCases),
                         [&](const TilesCase &of) { return of.chosen(other) != of.chunk; });
    };
    EXPECT_TRUE(matters(0.25) || matters(4)) << "a price of " << Cost().*price;
  }
}

/// The same price in all units changes nothing: only proportions count.
TEST(ItemsTest, AMachineThatIsTwiceAsFastChoosesTheSameChunks) {
  config::CostCoefficients fast;
  fast.chunkTokenUs /= 2;
  fast.chunkItemUs /= 2;
  fast.chunkMergeUs /= 2;
  fast.chunkPartialGBs *= 2;
  fast.latentTokenUs /= 2;
  fast.latentItemUs /= 2;
  for (const TilesCase &of : kTilesCases)
    EXPECT_EQ(of.chosen(fast), of.chunk);
}

} // namespace
} // namespace deft::plan
