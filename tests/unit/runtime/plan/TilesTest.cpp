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
