#include "runtime/plan/Tiles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace deft::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

auto isTile(int queryBegin, int queryEnd, int tokens, int runs) {
  using testing::Field;
  return testing::AllOf(Field(&Tile::queryBegin, queryBegin), Field(&Tile::queryCount, queryEnd - queryBegin),
                        Field(&Tile::tokens, tokens), Field(&Tile::runCount, runs));
}

std::vector<Segment> runsOf(const TileList &list, const Tile &tile) {
  const auto begin = list.runs.data() + tile.runBegin;
  return {begin, begin + tile.runCount};
}

TEST(TilesTest, FewReadersAreOneTile) {
  TileList list;
  RowTiler().tile(std::vector<Segment>{{0, 0, 100, 2, 6}, {1, 0, 10, 2, 4}, {2, 0, 20, 4, 6}}, 4, list);
  EXPECT_THAT(list.tiles, ElementsAre(isTile(2, 6, 130, 3)));
}

TEST(TilesTest, ManyReadersAreTilesOfWhatEachSees) {
  TileList list;
  RowTiler().tile(std::vector<Segment>{{0, 0, 100, 0, 5}, {1, 0, 10, 0, 2}, {2, 0, 20, 2, 5}}, 2, list);
  EXPECT_THAT(list.tiles, ElementsAre(isTile(0, 2, 110, 2), isTile(2, 4, 120, 2), isTile(4, 5, 120, 2)));
  EXPECT_THAT(runsOf(list, list.tiles[1]), ElementsAre(Segment{0, 0, 100, 2, 4}, Segment{2, 0, 20, 2, 4}));
}

TEST(TilesTest, BoundsSayWhereTilesBegin) {
  TileList list;
  RowTiler().tile(std::vector<Segment>{{0, 0, 100, 0, 5}}, std::vector<int>{0, 1, 5}, list);
  EXPECT_THAT(list.tiles, ElementsAre(isTile(0, 1, 100, 1), isTile(1, 5, 100, 1)));
}

/// Of a node whose last tokens only later queries see, a tile of these reads one run.
TEST(TilesTest, SegmentsOfOneNodeAreOneRunForWhoSeesBoth) {
  const std::vector<Segment> segments{{0, 0, 30, 0, 4}, {0, 30, 12, 2, 4}};
  TileList list;
  RowTiler().tile(segments, 2, list);
  ASSERT_THAT(list.tiles, ElementsAre(isTile(0, 2, 30, 1), isTile(2, 4, 42, 1)));
  EXPECT_THAT(runsOf(list, list.tiles[1]), ElementsAre(Segment{0, 0, 42, 2, 4}));
  list.clear();
  RowTiler().tile(segments, 4, list); // here some see the first tokens alone
  ASSERT_THAT(list.tiles, ElementsAre(isTile(0, 4, 42, 2)));
  EXPECT_THAT(runsOf(list, list.tiles[0]), ElementsAreArray(segments));
}

/// Of a causal stretch a tile has what all of it see, as one run with what comes before, and its own
/// triangle.
TEST(TilesTest, ASlopeIsATriangleInEachTile) {
  const std::vector<Segment> segments{{0, 0, 30, 0, 10}, {0, 30, 10, 0, 10, 1}};
  TileList list;
  RowTiler().tile(segments, 4, list);
  ASSERT_THAT(list.tiles, ElementsAre(isTile(0, 4, 34, 2), isTile(4, 8, 38, 2), isTile(8, 10, 40, 2)));
  EXPECT_THAT(runsOf(list, list.tiles[0]), ElementsAre(Segment{0, 0, 30, 0, 4}, Segment{0, 30, 4, 0, 4, 1}));
  EXPECT_THAT(runsOf(list, list.tiles[1]), ElementsAre(Segment{0, 0, 34, 4, 8}, Segment{0, 34, 4, 4, 8, 1}));
  EXPECT_THAT(runsOf(list, list.tiles[2]),
              ElementsAre(Segment{0, 0, 38, 8, 10}, Segment{0, 38, 2, 8, 10, 1}));
  list.clear();
  RowTiler().tile(segments, 1, list); // one query has no slope
  ASSERT_EQ(list.tiles.size(), 10U);
  EXPECT_THAT(runsOf(list, list.tiles[9]), ElementsAre(Segment{0, 0, 40, 9, 10}));
}

/// Queries before a stretch, and those of the node's children behind it.
TEST(TilesTest, ASlopeBeginsAndEndsInsideTiles) {
  const std::vector<Segment> segments{{0, 0, 8, 1, 12}, {1, 0, 9, 2, 12, 1}, {2, 0, 5, 11, 12}};
  TileList list;
  RowTiler().tile(segments, std::vector<int>{1, 5, 12}, list);
  ASSERT_EQ(list.tiles.size(), 2U);
  EXPECT_THAT(runsOf(list, list.tiles[0]), ElementsAre(Segment{0, 0, 8, 1, 5}, Segment{1, 0, 3, 2, 5, 1}));
  EXPECT_THAT(runsOf(list, list.tiles[1]), ElementsAre(Segment{0, 0, 8, 5, 12}, Segment{1, 0, 3, 5, 12},
                                                       Segment{1, 3, 6, 5, 12, 1}, Segment{2, 0, 5, 11, 12}));
}

TEST(TilesTest, ATileOfNothingIsNone) {
  TileList list;
  RowTiler().tile(std::vector<Segment>{}, 4, list);
  list.addTile(list.runs.size());
  (void)list.beginTile(3);
  list.endTile(0, 4, 0, 0, {});
  EXPECT_THAT(list.tiles, IsEmpty());
  EXPECT_EQ(list.runCount(), 0u);
}

TEST(TilesTest, TheChunkIsThatOfTheTileItIsLike) {
  Tile like;
  like.chunkTokens = 64;
  like.isEven = false;
  TileList list;
  RowTiler().tile(std::vector<Segment>{{0, 0, 100, 0, 2}}, 4, list, like);
  EXPECT_EQ(list.tiles[0].chunkTokens, 64);
  EXPECT_FALSE(list.tiles[0].isEven);
}

TEST(TilesTest, RunsOfPathsCountThoughNoneIsInTheList) {
  TileList list;
  list.addPath(0, 2, 7, 3, 1, 120);
  EXPECT_EQ(list.runCount(), 3u);
  EXPECT_EQ(list.runs.size(), 0u);
  EXPECT_TRUE(list.tiles[0].isPath);
  list.clear();
  EXPECT_EQ(list.runCount(), 0u);
}

} // namespace
} // namespace deft::plan
