#include "runtime/plan/Halves.h"

#include "runtime/plan/Partitions.h"
#include "tests/unit/runtime/plan/PlanTesting.h"

#include <array>
#include <cstring>
#include <random>
#include <tuple>

namespace deft::plan {
namespace {

using tree::KvTree;

constexpr int kNoChunk = 1 << 20;
constexpr int kRatios[] = {1, 3, 4, 7, 16};
constexpr spec::Partition kPartitions[] = {
    spec::Partition::Node,   spec::Partition::NodeChunk, spec::Partition::Flatten, spec::Partition::Cascade,
    spec::Partition::Greedy, spec::Partition::Union,     spec::Partition::Auto};
/// Enough queries that items have more than 64 rows at ratio 1.
constexpr test::ForestLimits kForest{.nodes = 40, .tokens = 200, .queries = 160};

/// A tree's items as they are cut: each holds up to 128 rows and all that these queries see, or a chunk of
/// it.
Plan cutOf(const KvTree &tree, int ratio, int chunkTokens) {
  TreeView view;
  view.build(tree);
  PartitionScratch scratch;
  TileList tiles;
  const TilePrice sizes[] = {{128 / ratio, 1.0}};
  makeUnionTiles(view, sizes, 64, scratch, tiles);
  Plan plan;
  ItemCutter cutter;
  EXPECT_TRUE(cutter.cut(view, tiles, chunkTokens, true, plan));
  plan.leaves = view.leaves;
  plan.callerIndex = view.callerIndex;
  plan.queryPos = view.queryPos;
  plan.generation = tree.generation();
  plan.structureGeneration = tree.structureGeneration();
  return plan;
}

Plan orderOf(Plan plan, int ratio) {
  orderHalves(ratio, plan);
  return plan;
}

std::span<const abi::Run> runsOf(const Plan &plan, const abi::Item &item) {
  return std::span(plan.runs).subspan(static_cast<std::size_t>(item.runBegin),
                                      static_cast<std::size_t>(item.runCount));
}

bool isSame(const Plan &a, const Plan &b) {
  const auto bytes = [](const auto &values) { return std::as_bytes(std::span(values)); };
  return std::ranges::equal(bytes(a.items), bytes(b.items)) &&
         std::ranges::equal(bytes(a.runs), bytes(b.runs));
}

/// All that is true of a (reader, token) pair, sorted.
std::vector<std::array<int, 4>> pairsOf(const Plan &plan, const abi::Item &item) {
  std::vector<std::array<int, 4>> pairs;
  for (const abi::Run &run : runsOf(plan, item))
    for (int query = run.queryBegin; query < run.queryEnd; ++query)
      for (int t = 0; t < run.tokens; ++t)
        pairs.push_back({query, run.location + t, run.position + t, run.depth});
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

/// Who computes each tile of an item, as the kernel finds out: bit 0 for rows [0, 64), bit 1 for the others.
/// What is between the first and the last reader of a tile counts as reader.
std::vector<int> seersOf(const Plan &plan, const abi::Item &item, int ratio) {
  std::vector<int> low(static_cast<std::size_t>((item.tokens + 63) / 64), item.queryCount), high(low.size());
  for (const abi::Run &run : runsOf(plan, item))
    for (int tile = run.begin / 64; tile <= (run.begin + run.tokens - 1) / 64; ++tile) {
      low[static_cast<std::size_t>(tile)] = std::min(low[static_cast<std::size_t>(tile)], run.queryBegin);
      high[static_cast<std::size_t>(tile)] = std::max(high[static_cast<std::size_t>(tile)], run.queryEnd);
    }
  std::vector<int> seers;
  for (std::size_t tile = 0; tile < low.size(); ++tile)
    seers.push_back((low[tile] * ratio < 64 ? 1 : 0) | (high[tile] * ratio > 64 ? 2 : 0));
  return seers;
}

/// The most tiles in a row that the same half alone computes.
int longestStretch(const std::vector<int> &seers) {
  int longest = 0, stretch = 0, last = 0;
  for (const int by : seers) {
    stretch = by == 3 ? 0 : by == last ? stretch + 1 : 1;
    last = by;
    longest = std::max(longest, stretch);
  }
  return longest;
}

TEST(HalvesTest, LeavesOfBothHalvesComeByTurns) {
  const KvTree tree = test::levelTree({1, 1024}, {256, 16});
  const Plan cut = cutOf(tree, 4, kNoChunk), ordered = orderOf(cut, 4);
  ASSERT_EQ(cut.items.size(), 32u);
  for (std::size_t i = 0; i < cut.items.size(); ++i) {
    EXPECT_EQ(longestStretch(seersOf(cut, cut.items[i], 4)), 4);
    EXPECT_THAT(seersOf(ordered, ordered.items[i], 4),
                testing::ElementsAre(3, 3, 3, 3, 1, 2, 1, 2, 1, 2, 1, 2));
  }
}

TEST(HalvesTest, ItemsKeepWhatTheirQueriesSee) {
  int changed = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed)
    for (const int ratio : kRatios) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", ratio " + std::to_string(ratio));
      const Plan cut = cutOf(placed(test::randomForest(seed, kForest)), ratio, seed % 2 ? kNoChunk : 512);
      const Plan ordered = orderOf(cut, ratio);
      ASSERT_EQ(cut.items.size(), ordered.items.size());
      std::vector<int> items(ordered.runs.size(), 0); // of each run
      for (std::size_t i = 0; i < cut.items.size(); ++i) {
        const abi::Item &item = ordered.items[i];
        for (int r = item.runBegin; r < item.runBegin + item.runCount; ++r)
          ++items[static_cast<std::size_t>(r)];
        int tokens = 0;
        for (const abi::Run &run : runsOf(ordered, item)) {
          EXPECT_EQ(run.begin, tokens);
          EXPECT_GT(run.tokens, 0);
          EXPECT_EQ(run.reserved0, 0);
          tokens += run.tokens;
        }
        EXPECT_EQ(tokens, item.tokens);
        EXPECT_EQ(item.partialBegin, cut.items[i].partialBegin);
        ASSERT_EQ(pairsOf(cut, cut.items[i]), pairsOf(ordered, item));
      }
      EXPECT_THAT(items, testing::Each(1));
      changed += !isSame(cut, ordered);
    }
  EXPECT_GT(changed, 100);
}

TEST(HalvesTest, TilesOfOneHalfAlternateWhileBothHaveSome) {
  int alternating = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed)
    for (const int ratio : kRatios) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", ratio " + std::to_string(ratio));
      const Plan ordered = orderOf(cutOf(test::randomForest(seed, kForest), ratio, kNoChunk), ratio);
      for (const abi::Item &item : ordered.items) {
        int own[4] = {};
        for (const abi::Run &run : runsOf(ordered, item))
          own[(run.queryBegin * ratio < 64 ? 1 : 0) | (run.queryEnd * ratio > 64 ? 2 : 0)] += run.tokens;
        if (own[1] == 0 || own[2] == 0)
          continue;
        const std::vector<int> seers = seersOf(ordered, item, ratio);
        int tiles[4] = {}, shared = (own[3] + 63) / 64;
        for (std::size_t tile = 0; tile < seers.size(); ++tile) {
          ++tiles[seers[tile]];
          if (static_cast<int>(tile) < shared) {
            EXPECT_EQ(seers[tile], 3);
          } else if (static_cast<int>(tile) > shared && seers[tile] != 3 && seers[tile] == seers[tile - 1]) {
            // The other half has no more.
            EXPECT_EQ(
                std::count(seers.begin() + static_cast<std::ptrdiff_t>(tile), seers.end(), 3 - seers[tile]),
                0);
          }
        }
        // Beyond the common ones, at most one tile is of both.
        EXPECT_LE(tiles[3], shared + 1);
        alternating += std::min(tiles[1], tiles[2]) > 1;
      }
    }
  EXPECT_GT(alternating, 100);
}

TEST(HalvesTest, TailsAreTheLastPiecesInTheOrderOfRuns) {
  int tails = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed)
    for (const int ratio : kRatios) {
      const KvTree tree = test::randomForest(seed, kForest);
      const Plan cut = cutOf(tree, ratio, 512), ordered = orderOf(cut, ratio);
      // What a tail is of: leaf, item and the token behind the run.
      const auto facts = [&](const Plan &plan) {
        std::vector<std::tuple<int, int, int>> all;
        for (const Plan::Tail &tail : plan.tails) {
          const abi::Run &run = plan.runs[static_cast<std::size_t>(tail.run)];
          all.emplace_back(tail.leaf, tail.item, run.position + run.tokens);
        }
        std::sort(all.begin(), all.end());
        return all;
      };
      ASSERT_EQ(facts(cut), facts(ordered)) << "seed " << seed << ", ratio " << ratio;
      for (std::size_t t = 0; t < ordered.tails.size(); ++t, ++tails) {
        const abi::Item &item = ordered.items[static_cast<std::size_t>(ordered.tails[t].item)];
        EXPECT_GE(ordered.tails[t].run, item.runBegin);
        EXPECT_LT(ordered.tails[t].run, item.runBegin + item.runCount);
        if (t > 0 && ordered.tails[t].item == ordered.tails[t - 1].item) {
          EXPECT_GT(ordered.tails[t].run, ordered.tails[t - 1].run);
        }
      }
    }
  EXPECT_GT(tails, 1000);
}

TEST(HalvesTest, WhatOneHalfDoesNotHaveForItselfLeavesTheItemAlone) {
  // Both read the root, only queries from 64 on have more.
  KvTree tree;
  const int root = tree.addNode(-1, 300).value();
  for (int i = 0; i < 128; ++i)
    (void)tree.addQuery(i < 64 ? root : tree.addNode(root, 10).value());
  const Plan lopsided = cutOf(tree, 1, kNoChunk);
  ASSERT_EQ(lopsided.items.size(), 1u);
  ASSERT_GT(lopsided.runs.size(), 60u);
  EXPECT_TRUE(isSame(lopsided, orderOf(lopsided, 1)));
  // No more than 64 rows: one warpgroup has them all.
  const Plan narrow = cutOf(test::levelTree({1, 16}, {300, 100}), 4, kNoChunk);
  ASSERT_EQ(narrow.items.size(), 1u);
  EXPECT_TRUE(isSame(narrow, orderOf(narrow, 4)));
  const Plan wide = cutOf(test::levelTree({1, 32}, {300, 100}), 4, kNoChunk);
  EXPECT_FALSE(isSame(wide, orderOf(wide, 4)));
}

TEST(HalvesTest, ItemsBetweenThoseOrderedKeepTheirRuns) {
  // Small trees between large ones.
  KvTree tree;
  for (const int queries : {3, 32, 2, 1, 32, 5}) {
    const int root = tree.addNode(-1, 100).value();
    for (int i = 0; i < queries; ++i)
      (void)tree.addQuery(tree.addNode(root, 70).value());
  }
  const Plan cut = cutOf(tree, 4, kNoChunk), ordered = orderOf(cut, 4);
  ASSERT_EQ(cut.items.size(), 6u);
  EXPECT_THAT(ordered.halved, testing::ElementsAre(1, 4));
  for (const int i : {0, 2, 3, 5}) {
    const abi::Item &before = cut.items[static_cast<std::size_t>(i)],
                    &now = ordered.items[static_cast<std::size_t>(i)];
    ASSERT_EQ(now.runCount, before.runCount);
    EXPECT_EQ(0, std::memcmp(runsOf(ordered, now).data(), runsOf(cut, before).data(),
                             runsOf(cut, before).size_bytes()));
  }
}

/// Leaves grow by different numbers of tokens; what is planned for the others is what it would be anew.
TEST(HalvesTest, AdvancedPlansAreOrderedAsNewOnes) {
  int advanced = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed)
    for (const int ratio : kRatios) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", ratio " + std::to_string(ratio));
      KvTree tree = spread(test::randomForest(seed, kForest));
      std::mt19937_64 random(seed);
      Plan plan = orderOf(cutOf(tree, ratio, kNoChunk), ratio);
      const std::size_t mostRuns = plan.runs.size() + mostSplits(plan);
      for (int step = 0; step < 6; ++step) {
        for (int node = 0; node < static_cast<int>(tree.nodes().size()); ++node)
          if (tree.nodes()[static_cast<std::size_t>(node)].firstChild < 0 && random() % 4 > 0)
            (void)tree.append(node, 1 + static_cast<int>(random() % 8));
        if (advance(tree, plan) == Advance::NeedsNewPlan)
          break;
        const Plan anew = orderOf(cutOf(tree, ratio, kNoChunk), ratio);
        const auto isLike = [](const abi::Item &a, const abi::Item &b) {
          return a.queryBegin == b.queryBegin && a.queryCount == b.queryCount && a.tokens == b.tokens;
        };
        if (!std::ranges::equal(plan.items, anew.items, isLike))
          break; // other queries are together now
        ASSERT_TRUE(isSame(plan, anew));
        ASSERT_EQ(plan.halved, anew.halved);
        EXPECT_LE(plan.runs.size(), mostRuns);
        advanced += !plan.halved.empty();
      }
    }
  EXPECT_GT(advanced, 100);
}

/// The same from outside: with every partition, and items sorted.
TEST(HalvesTest, AdvancedForestsAreCoveredExactlyOnce) {
  int advanced = 0;
  Planner planner;
  Plan plan;
  for (std::uint64_t seed = 0; seed < 100; ++seed)
    for (const spec::Partition partition : kPartitions) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", " + config::partitionName(partition));
      KvTree tree = spread(test::randomForest(seed, kForest));
      const VariantFacts facts{kRatios[seed % std::size(kRatios)], 2};
      const config::Config config = makeSm90Config(seed % 2 ? 0 : 400, partition);
      ASSERT_TRUE(planner.make(tree, facts, config, 1, plan));
      for (int step = 0; step < 4; ++step) {
        for (int node = static_cast<int>(seed % 3); node < static_cast<int>(tree.nodes().size()); node += 3)
          if (tree.nodes()[static_cast<std::size_t>(node)].firstChild < 0)
            (void)tree.append(node, 1 + step);
        if (advance(tree, plan) == Advance::NeedsNewPlan)
          break;
        const auto verified = verify(plan, tree, facts, config);
        ASSERT_TRUE(verified) << verified.error().message;
        advanced += !plan.halved.empty();
      }
    }
  EXPECT_GT(advanced, 100);
}

TEST(HalvesTest, OnlyWideSm90PhasesConcernIt) {
  config::Config config = makeConfig(0, {128, 64});
  EXPECT_FALSE(hasHalves(config));
  config.phases[1].family = config::Family::Sm90;
  EXPECT_FALSE(hasHalves(config));
  config.phases[0].family = config::Family::Sm90;
  EXPECT_TRUE(hasHalves(config));
}

TEST(HalvesTest, ForestsAreCoveredExactlyOnce) {
  Planner planner;
  Plan plan;
  for (std::uint64_t seed = 0; seed < 100; ++seed)
    for (const int ratio : kRatios)
      for (const spec::Partition partition : kPartitions) {
        const KvTree tree = placed(test::randomForest(seed, kForest));
        const VariantFacts facts{ratio, 2};
        const config::Config config = makeSm90Config(seed % 3 ? 0 : 400, partition);
        ASSERT_TRUE(planner.make(tree, facts, config, 8, plan));
        const auto verified = verify(plan, tree, facts, config);
        ASSERT_TRUE(verified) << verified.error().message << " (seed " << seed << ", ratio " << ratio << ", "
                              << config::partitionName(partition) << ")";
      }
}

} // namespace
} // namespace deft::plan
