#include "runtime/tree/BeamTree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

namespace deft::tree {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

/// Where the tokens of each beam's path lie.
using Paths = std::vector<std::vector<int>>;

Paths pathsOf(const BeamTree &beams) {
  const KvTree tree = beams.toTree();
  Paths paths;
  for (const Query &query : tree.queries()) {
    std::vector<int> path;
    for (int node = query.node; node >= 0; node = tree.nodes()[node].parent)
      for (int t = tree.nodes()[node].tokens; t-- > 0;)
        path.push_back(tree.nodes()[node].location + t);
    std::reverse(path.begin(), path.end());
    paths.push_back(std::move(path));
  }
  return paths;
}

/// Of each beam: where the token lies that it gained in the last step.
std::vector<int> locationsOf(const BeamTree &beams) {
  std::vector<int> locations(beams.order().size());
  std::size_t seat = 0;
  for (const BeamTree::Piece &piece : beams.pieces())
    for (int i = 0; i < piece.tokens; ++i)
      locations[beams.order()[seat++]] =
          (beams.room().firstPage + piece.page) * beams.room().pageSize + piece.offset + i;
  return locations;
}

/// A page is used where somebody sees a token of it.
int freePagesOf(const Paths &paths, const BeamRoom &room) {
  std::set<int> used;
  for (const std::vector<int> &path : paths)
    for (const int location : path)
      if (location >= room.firstPage * room.pageSize)
        used.insert(location / room.pageSize);
  return room.pages - static_cast<int>(used.size());
}

/// Seats of stretches are intervals in each other or apart, and rise.
void expectNested(const BeamTree &beams) {
  std::vector<int> ends;
  int begin = 0;
  for (const BeamStretch &stretch : beams.stretches()) {
    EXPECT_LE(begin, stretch.beamBegin);
    begin = stretch.beamBegin;
    while (!ends.empty() && ends.back() <= begin)
      ends.pop_back();
    EXPECT_LT(begin, stretch.beamEnd);
    EXPECT_EQ(stretch.depth, static_cast<int>(ends.size()));
    if (!ends.empty()) {
      EXPECT_LE(stretch.beamEnd, ends.back());
    }
    ends.push_back(stretch.beamEnd);
  }
}

TEST(BeamTreeTest, BeamsKeepTheirPathsWhoeverTheyGoOnFrom) {
  const std::vector<BeamTree::History> histories{{{0, 5}, {8, 3}}, {{0, 5}}, {{20, 1}, {30, 2}, {16, 2}}};
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    const BeamRoom room{std::vector{1, 3, 16}[seed % 3], 40, 600};
    BeamTree beams = BeamTree::make(room).value();
    for (int search = 0; search < 2; ++search) {
      ASSERT_TRUE(beams.start(histories));
      Paths paths = pathsOf(beams);
      EXPECT_EQ(paths[0], (std::vector{0, 1, 2, 3, 4, 8, 9, 10}));
      for (int step = 0; step < 12; ++step) {
        std::vector<int> parents(static_cast<std::size_t>(below(40) + (step < 11)));
        for (int &parent : parents)
          parent = below(seed % 2 ? beams.beams() : std::min(beams.beams(), 5)); // some have many heirs
        ASSERT_TRUE(beams.advance(parents));
        Paths next;
        const std::vector<int> locations = locationsOf(beams);
        for (std::size_t i = 0; i < parents.size(); ++i) {
          next.push_back(paths[parents[i]]);
          next.back().push_back(locations[i]);
        }
        paths = std::move(next);
        ASSERT_EQ(pathsOf(beams), paths);
        ASSERT_EQ(beams.freePages(), freePagesOf(paths, room));
        for (int seat = 0; seat < beams.beams(); ++seat)
          EXPECT_EQ(beams.lengths()[seat], std::ssize(paths[beams.order()[seat]]));
        expectNested(beams);
        std::set<int> last;
        for (const int location : locations) // each in a slot of its own, also not another's by now
          EXPECT_TRUE(last.insert(location).second);
        for (const std::vector<int> &path : paths)
          for (std::size_t t = 0; t + 1 < path.size(); ++t)
            EXPECT_FALSE(last.contains(path[t]));
        if (parents.empty())
          break;
      }
    }
  }
}

TEST(BeamTreeTest, SearchesAreApart) {
  BeamTree beams = BeamTree::make({1, 10, 20}).value();
  const std::vector<BeamTree::History> histories{{{0, 4}}, {{4, 2}}, {{6, 1}}};
  ASSERT_TRUE(beams.start(histories));
  EXPECT_THAT(beams.searches(), ElementsAre(0, 1, 2));
  ASSERT_TRUE(beams.advance(std::vector{2, 0, 0, 2, 2}));
  EXPECT_THAT(beams.searches(), ElementsAre(0, 2)); // nobody goes on from the second
  EXPECT_THAT(beams.order(), ElementsAre(1, 2, 0, 3, 4));
  EXPECT_THAT(locationsOf(beams), ElementsAre(12, 10, 11, 13, 14)); // side by side in the order of seats
}

TEST(BeamTreeTest, PagesOfBeamsThatEndAreFreeInTheSameStep) {
  BeamTree beams = BeamTree::make({1, 10, 8}).value();
  const BeamTree::History history{{0, 4}};
  ASSERT_TRUE(beams.start({&history, 1}));
  ASSERT_TRUE(beams.advance(std::vector<int>(4, 0)));
  EXPECT_EQ(beams.freePages(), 4);
  ASSERT_TRUE(beams.advance(std::vector<int>(7, 0))); // of eight, those of three beams that end
  EXPECT_EQ(beams.freePages(), 0);
  ASSERT_TRUE(beams.advance(std::vector{3}));
  EXPECT_EQ(beams.freePages(), 5);
}

TEST(BeamTreeTest, PagesComeAndGoWithTheOwnerOfTheCache) {
  BeamTree beams = BeamTree::make({2, 10, 3}).value();
  const BeamTree::History history{{0, 4}};
  ASSERT_TRUE(beams.start({&history, 1}));
  ASSERT_TRUE(beams.advance(std::vector<int>(4, 0)));
  EXPECT_THAT(beams.newPages(), ElementsAre(10, 11));
  EXPECT_THAT(beams.freedPages(), ElementsAre());
  EXPECT_THAT(beams.takePages(5), ElementsAre(12));
  EXPECT_EQ(beams.freePages(), 0);
  EXPECT_FALSE(beams.advance(std::vector{0, 3}));
  EXPECT_THAT(beams.addPages(2).value(), ElementsAre(12, 13)); // the place of the one that was taken, too
  const Paths before = pathsOf(beams);
  ASSERT_TRUE(beams.advance(std::vector{3, 3}));
  EXPECT_THAT(beams.newPages(), ElementsAre(10)); // whose tokens nobody sees any more
  EXPECT_EQ(beams.freePages(), 2);
  ASSERT_TRUE(beams.advance(std::vector{0}));
  EXPECT_THAT(beams.newPages(), ElementsAre(12));
  ASSERT_TRUE(beams.advance(std::vector{0})); // behind the last one, in its page
  EXPECT_THAT(beams.newPages(), ElementsAre());
  EXPECT_EQ(beams.freePages(), 1);
  EXPECT_EQ(pathsOf(beams)[0].size(), before[0].size() + 3);
  ASSERT_TRUE(beams.advance(std::vector<int>()));
  EXPECT_THAT(beams.freedPages(), testing::UnorderedElementsAre(10, 11, 12));
  EXPECT_FALSE(beams.addPages(1 << 30));
  ASSERT_TRUE(beams.start({&history, 1}, {4, 2, 7}));
  EXPECT_EQ(beams.freePages(), 7);
  ASSERT_TRUE(beams.advance(std::vector{0}));
  EXPECT_THAT(locationsOf(beams), ElementsAre(8));
}

TEST(BeamTreeTest, WithoutRoomNothingChanges) {
  BeamTree beams = BeamTree::make({2, 10, 3}).value();
  const BeamTree::History history{{0, 4}};
  ASSERT_TRUE(beams.start({&history, 1}));
  ASSERT_TRUE(beams.advance(std::vector<int>(3, 0)));
  const Paths paths = pathsOf(beams);
  const std::uint64_t generation = beams.generation();
  const auto failed = beams.advance(std::vector{0, 1, 2, 0, 0});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "out of space: 2 pages of 2 tokens needed, 1 of 3 free");
  const auto afterDeaths = beams.advance(std::vector<int>(5, 0)); // the page of the third one would be free
  ASSERT_FALSE(afterDeaths);
  EXPECT_EQ(afterDeaths.error().message, "out of space: 3 pages of 2 tokens needed, 2 of 3 free");
  EXPECT_EQ(beams.freePages(), 1);
  EXPECT_EQ(beams.generation(), generation);
  EXPECT_EQ(pathsOf(beams), paths);
  ASSERT_TRUE(beams.advance(std::vector<int>(4, 0)));
  EXPECT_EQ(beams.freePages(), 0);
  ASSERT_TRUE(beams.start({&history, 1}));
  EXPECT_EQ(beams.freePages(), 3);
}

TEST(BeamTreeTest, WhatCannotBeIsNamed) {
  const auto roomError = [](const BeamRoom &room) { return BeamTree::make(room).error().message; };
  EXPECT_EQ(roomError({0, 0, 1}), "1 pages of 0 tokens from page 0 on are no room for beams");
  EXPECT_EQ(roomError({16, 1 << 26, 1}), "1 pages of 16 tokens from page 67108864 on are no room for beams");
  EXPECT_EQ(roomError({1, -1, 4}), "4 pages of 1 tokens from page -1 on are no room for beams");
  BeamTree beams = BeamTree::make({1, 10, 8}).value();
  const auto startError = [&](const BeamTree::History &history) {
    return beams.start({&history, 1}).error().message;
  };
  EXPECT_EQ(startError({}), "history 0 has no token");
  EXPECT_EQ(startError({{0, 4}, {8, 0}}), "history 0 has 0 tokens at location 8");
  EXPECT_EQ(startError({{-1, 4}}), "history 0 has 4 tokens at location -1");
  const BeamTree::History history{{0, 4}};
  ASSERT_TRUE(beams.start({&history, 1}));
  const auto failed = beams.advance(std::vector{0, 1});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "beam 1 goes on from beam 1 of 1");
  EXPECT_EQ(beams.advance(std::vector{-1}).error().message, "beam 0 goes on from beam -1 of 1");
  EXPECT_EQ(beams.beams(), 1);
}

} // namespace
} // namespace deft::tree
