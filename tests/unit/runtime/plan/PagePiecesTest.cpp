#include "runtime/plan/PagePieces.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

namespace deft::plan {
namespace {

abi::Run run(int begin, int tokens, int location) {
  abi::Run made{};
  made.begin = begin;
  made.tokens = tokens;
  made.location = location;
  return made;
}

TEST(PagePiecesTest, APieceIsThePowerOfTwoThatDividesPages) {
  EXPECT_EQ(pieceOf(16), 16);
  EXPECT_EQ(pieceOf(32), 32);
  EXPECT_EQ(pieceOf(96), 32);
  EXPECT_EQ(pieceOf(256), 64); // a tile
  EXPECT_EQ(pieceOf(24), 0);
  EXPECT_EQ(pieceOf(1), 0);
  EXPECT_EQ(pieceOf(0), 0); // contiguous
}

TEST(PagePiecesTest, WholePiecesAreBetweenThePlacesWherePagesBegin) {
  const auto whole = [](int tokens, int location) {
    const Part part = wholePieces(run(0, 0, location), tokens, 16, 3);
    return std::pair(part.begin, part.end);
  };
  EXPECT_EQ(whole(32, 0), std::pair(0, 32));
  EXPECT_EQ(whole(40, 10), std::pair(6, 38));
  EXPECT_EQ(whole(20, 10), std::pair(3, 3)); // none of 16 is whole
}

/// Each token of each run comes once, pieces before groups before the rest, whatever the runs.
TEST(PagePiecesTest, PartsAreAllTokensOnce) {
  constexpr unsigned kSeed = 3;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937 random(kSeed);
  for (int turn = 0; turn < 300; ++turn)
    for (const int piece : {0, 16, 32, 64}) {
      std::vector<abi::Run> runs;
      std::vector<char> grows;
      for (unsigned i = 0; i < 1 + random() % 4; ++i) {
        runs.push_back(run(0, 1 + static_cast<int>(random() % 200), static_cast<int>(random() % 300)));
        grows.push_back(random() % 2 == 0);
      }
      std::vector<std::vector<int>> times(runs.size());
      for (std::size_t r = 0; r < runs.size(); ++r)
        times[r].resize(static_cast<std::size_t>(runs[r].tokens));
      int last = 0; // 0: pieces, 1: groups, 2: the rest
      std::size_t parts = 0;
      forEachPart(
          runs.size(), [](std::size_t i) { return static_cast<int>(i); }, runs.data(), grows.data(), piece,
          [&](int r, Part part, PartPlace) {
            ++parts;
            if (part.begin >= part.end)
              return;
            const auto divides = [&](int size) {
              const int location = runs[static_cast<std::size_t>(r)].location;
              return size > 0 && (location + part.begin) % size == 0 && (part.end - part.begin) % size == 0;
            };
            // The last piece of what grows is not whole for long.
            const bool doesGrow = grows[static_cast<std::size_t>(r)] != 0 &&
                                  part.end == runs[static_cast<std::size_t>(r)].tokens;
            const int kind = doesGrow ? 2 : divides(piece) ? 0 : divides(kGroupTokens) ? 1 : 2;
            if (piece != 0) {
              EXPECT_GE(kind, last) << "turn " << turn << ", piece " << piece;
              last = std::max(last, kind);
            }
            for (int t = part.begin; t < part.end; ++t)
              ++times[static_cast<std::size_t>(r)][static_cast<std::size_t>(t)];
          });
      EXPECT_LE(parts, runs.size() * mostParts(piece));
      for (const std::vector<int> &each : times)
        EXPECT_EQ(std::count(each.begin(), each.end(), 1), static_cast<std::ptrdiff_t>(each.size()))
            << "turn " << turn << ", piece " << piece;
    }
}

TEST(PagePiecesTest, PiecesAreInPlaceWhereTheyBeginAPieceOfATile) {
  const char none[] = {0, 0}, firstGrows[] = {1, 0};
  const std::vector<abi::Run> aligned{run(0, 64, 64), run(64, 32, 0)};
  EXPECT_TRUE(areInPlace(aligned, none, 32));
  // A leaf that grows moves what is behind it.
  EXPECT_FALSE(areInPlace(aligned, firstGrows, 32));
  EXPECT_FALSE(areInPlace(std::vector{run(0, 8, 8), run(8, 32, 0)}, none, 32));
  EXPECT_TRUE(areInPlace(std::vector{run(0, 8, 8), run(8, 12, 2)}, none, 32)); // nothing is whole
}

TEST(PagePiecesTest, RunsAreOnlyPiecesWhereNothingIsBesideThem) {
  const char none[] = {0, 0}, lastGrows[] = {0, 1};
  EXPECT_TRUE(areOnlyPieces(std::vector{run(0, 32, 16), run(32, 5, 3)}, none));
  EXPECT_FALSE(areOnlyPieces(std::vector{run(0, 33, 16)}, none));
  EXPECT_FALSE(areOnlyPieces(std::vector{run(0, 32, 16), run(32, 16, 0)}, lastGrows));
}

} // namespace
} // namespace deft::plan
