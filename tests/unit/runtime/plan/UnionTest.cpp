#include "runtime/plan/Partitions.h"
#include "tests/unit/runtime/plan/PlanTesting.h"

#include <gmock/gmock.h>

#include <random>

namespace deft::plan {
namespace {

using ::testing::ElementsAre;
using tree::KvTree;

/// Sizes of the tiles, in plan order.
std::vector<int> tileSizes(const KvTree &tree, const std::vector<TilePrice> &sizes, double tileUs = 64) {
  TreeView view;
  view.build(tree);
  PartitionScratch scratch;
  TileList list;
  makeUnionTiles(view, sizes, tileUs, scratch, list);
  std::vector<int> queries;
  for (const Tile &tile : list.tiles)
    queries.push_back(tile.queryCount);
  return queries;
}

const std::vector<TilePrice> kNarrowAndWide = {{4, 1.0}, {16, 2.0}};

TEST(UnionTest, WideWhereMuchIsSharedNarrowWhereLittleIs) {
  // 16 branches of a long prompt, then 16 of a short one with long leaves.
  KvTree tree;
  for (const auto &[prompt, leaf] : {std::pair{5000, 20}, {300, 400}}) {
    const int root = tree.addNode(-1, prompt).value();
    for (int i = 0; i < 16; ++i)
      (void)tree.addQuery(tree.addNode(root, leaf).value());
  }
  EXPECT_THAT(tileSizes(tree, kNarrowAndWide), ElementsAre(16, 4, 4, 4, 4));
}

TEST(UnionTest, TilesEndWhereSubtreesEnd) {
  // Three subtrees of three: tiles of four would read two of the branches twice.
  EXPECT_THAT(tileSizes(test::levelTree({1, 3, 9}, {64, 600, 10}), {{4, 1.0}}), ElementsAre(3, 3, 3));
}

TEST(UnionTest, QueriesThatShareNextToNothingStayApart) {
  EXPECT_THAT(tileSizes(test::levelTree({1, 3}, {50, 900}), kNarrowAndWide), ElementsAre(1, 1, 1));
  EXPECT_THAT(tileSizes(test::levelTree({1, 3}, {50, 200}), kNarrowAndWide), ElementsAre(3));
}

TEST(UnionTest, TinyRequestsShareATile) {
  EXPECT_THAT(tileSizes(test::levelTree({4}, {10}), kNarrowAndWide), ElementsAre(4));
}

/// Against every row of tiles there is, on small forests. The planner looks at some of the places only where
/// a tile may end, so it may miss the best by a little, and must not by much.
TEST(UnionTest, IsCloseToTheCheapestRowOfTiles) {
  double worst = 1, sum = 0;
  int trees = 0;
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    const KvTree tree = test::randomForest(seed, {30, 300, 30});
    TreeView view;
    view.build(tree);
    if (view.queryCount() == 0)
      continue;
    const double tileUs = 64;
    const auto costOf = [&](int begin, int end) {
      double tokens = 0;
      for (const Segment &segment : view.segments)
        if (segment.queryBegin < end && segment.queryEnd > begin)
          tokens += segment.tokens;
      return tileUs + tokens * (end - begin <= 4 ? 1.0 : 2.0);
    };
    const auto mayJoin = [&](int query) { // as documented: shares 1/8 of what it adds, or both are tiny
      double shared = 0, path = 0, before = 0;
      for (const Segment &segment : view.segments) {
        const bool isHere = segment.queryBegin <= query && query < segment.queryEnd;
        const bool isBefore = segment.queryBegin <= query - 1 && query - 1 < segment.queryEnd;
        shared += isHere && isBefore ? segment.tokens : 0;
        path += isHere ? segment.tokens : 0;
        before += isBefore ? segment.tokens : 0;
      }
      return shared * 8 >= path - shared || before + path - shared <= 64;
    };
    const int queries = view.queryCount();
    std::vector<double> best(static_cast<std::size_t>(queries) + 1, 1e30);
    best[0] = 0;
    for (int begin = 0; begin < queries; ++begin)
      for (int end = begin + 1; end <= std::min(queries, begin + 16); ++end) {
        best[end] = std::min(best[end], best[begin] + costOf(begin, end));
        if (end < queries && !mayJoin(end))
          break;
      }
    double cost = 0;
    int at = 0;
    PartitionScratch scratch;
    TileList list;
    makeUnionTiles(view, kNarrowAndWide, tileUs, scratch, list);
    for (const int bound : scratch.bounds) {
      if (bound > 0)
        cost += costOf(at, bound);
      at = bound;
    }
    ASSERT_GE(cost, best[queries] * 0.999999) << "seed " << seed;
    worst = std::max(worst, cost / best[queries]);
    sum += cost / best[queries];
    ++trees;
  }
  EXPECT_LT(worst, 1.4);
  EXPECT_LT(sum / trees, 1.015);
}

} // namespace
} // namespace deft::plan
