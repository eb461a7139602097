#include "tests/device/Words.h"

#include "deft/common/fragment.cuh"
#include "deft/ptx/block.cuh"
#include "deft/ptx/ldmatrix.cuh"
#include "deft/ptx/mma_sync.cuh"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace deft {
namespace {

using test::Block;
using test::runBlock;

constexpr int kTiles = 3, kRows = 16, kColumns = 8 * kTiles;

/// Every place of the matrix is some lane's, and one's alone.
TEST(FragmentTest, LanesShareTheMatrixAmongThem) {
  std::set<std::pair<int, int>> places;
  for (int lane = 0; lane < 32; ++lane) {
    Fragment<kTiles> s{};
    int visited = 0;
    s.forEach([&](float &, int r, int column) {
      EXPECT_TRUE(places.emplace(fragmentRow(lane, r), fragmentColumn(lane) + column).second);
      ++visited;
    });
    EXPECT_EQ(visited, 4 * kTiles);
    EXPECT_EQ(isFirstOfRow(lane), firstLaneOfRow(fragmentRow(lane, 0)) == lane);
    EXPECT_EQ(firstLaneOfRow(fragmentRow(lane, 1)), lane / 4 * 4);
  }
  EXPECT_EQ(places.size(), static_cast<std::size_t>(kRows * kColumns));
  EXPECT_EQ(*places.begin(), std::pair(0, 0));
  EXPECT_EQ(*places.rbegin(), std::pair(kRows - 1, kColumns - 1));
}

/// The instruction is the judge of what is where: the product of two matrices, by ldmatrix and mma.sync from
/// rows without any swizzle, is read as a fragment. b comes once as rows that are columns of the product (as
/// K), and once transposed (as V).
TEST(FragmentTest, ProductsAreWhereTheFragmentSays) {
  std::mt19937 random(3);
  std::uniform_int_distribution<int> small(-8, 8);
  int a[16][16], b[16][16];
  for (auto *matrix : {&a, &b})
    for (auto &row : *matrix)
      for (int &x : row)
        x = small(random);
  for (bool isTransposed : {false, true})
    EXPECT_EQ(runBlock({.sharedBytes = 1024},
                       [&] {
                         char *shared = ptx::dynamicShared<16>();
                         const unsigned base = ptx::sharedAddress(shared);
                         auto *memory = reinterpret_cast<std::uint16_t *>(shared);
                         const int lane = static_cast<int>(threadIdx.x);
                         if (lane < 16)
                           for (int i = 0; i < 16; ++i) {
                             memory[lane * 16 + i] = exec::f16FromFloat(static_cast<float>(a[lane][i]));
                             memory[256 + lane * 16 + i] = exec::f16FromFloat(static_cast<float>(b[lane][i]));
                           }
                         __syncwarp();
                         const auto at = [&](int row, int column) {
                           return base + static_cast<unsigned>(row * 32 + column * 16);
                         };
                         unsigned left[4], right[4];
                         ptx::ldmatrix4(left, at(lane % 16, lane / 16));
                         if (isTransposed)
                           ptx::ldmatrix4Transposed(right, at(16 + lane % 16, lane / 16));
                         else
                           ptx::ldmatrix4(right, at(16 + lane % 8 + lane / 16 * 8, lane / 8 % 2));
                         Fragment<2> product{};
                         ptx::mma16816<f16>(product.tile[0], left, right[0], right[1]);
                         ptx::mma16816<f16>(product.tile[1], left, right[2], right[3]);
                         product.forEach([&](float x, int r, int column) {
                           const int row = fragmentRow(lane, r);
                           const int to = fragmentColumn(lane) + column;
                           int want = 0;
                           for (int k = 0; k < 16; ++k)
                             want += a[row][k] * (isTransposed ? b[k][to] : b[to][k]);
                           EXPECT_EQ(x, static_cast<float>(want)) << row << " " << to;
                         });
                       }),
              "");
}

/// A value that is known by its place.
float valueAt(int row, int column) { return static_cast<float>((row * 37 + column * 11) % 101 - 50); }

Fragment<kTiles> knownFragment(int lane) {
  Fragment<kTiles> s{};
  s.forEach(
      [&](float &x, int r, int column) { x = valueAt(fragmentRow(lane, r), fragmentColumn(lane) + column); });
  return s;
}

TEST(FragmentTest, RowsAreJoinedOverTheirFourLanes) {
  EXPECT_EQ(runBlock({.seed = 5},
                     [&] {
                       const int lane = static_cast<int>(threadIdx.x);
                       Fragment<kTiles> s = knownFragment(lane);
                       for (int r = 0; r < 2; ++r) {
                         const int row = fragmentRow(lane, r);
                         float sum = 0, top = -1000;
                         for (int column = 0; column < kColumns; ++column) {
                           sum += valueAt(row, column);
                           top = std::max(top, valueAt(row, column));
                         }
                         float mine = 0;
                         s.forEachOfRow(r, [&](float &x) { mine += x; });
                         EXPECT_EQ(sumOfRow(mine), sum) << row;
                         EXPECT_EQ(largestOfRow(s.largest(r)), top) << row;
                         EXPECT_EQ(largestOfRow(s.largest(r, 60.f)), 60.f);
                       }
                     }),
            "");
}

TEST(FragmentTest, PartsAndTilesAreThoseOfTheWhole) {
  for (int lane : {0, 13, 31}) {
    Fragment<kTiles> s = knownFragment(lane);
    s.part<2>(1).scaleRows({2.f, -1.f});
    s.forEachOfTile(0, [](float &x, int, int column) {
      EXPECT_LT(column, 2);
      x += 1.f;
    });
    s.forEach([&](float &x, int r, int column) {
      const float was = valueAt(fragmentRow(lane, r), fragmentColumn(lane) + column);
      EXPECT_EQ(x, column < 8 ? was + 1.f : r == 0 ? was * 2.f : -was);
    });
  }
}

/// Weights become the a operand of the product with V: multiplied by a unit matrix they come back.
TEST(FragmentTest, PackedFragmentsAreOperands) {
  EXPECT_EQ(runBlock({},
                     [&] {
                       const int lane = static_cast<int>(threadIdx.x);
                       const Fragment<kTiles> s = knownFragment(lane);
                       unsigned a[4];
                       packOperand<bf16>(s.part<2>(0), a);
                       Fragment<2> back{};
                       for (int n = 0; n < 2; ++n) {
                         // Column lane / 4 of the unit matrix's tile n, at depths 2 (lane % 4), ... and 8
                         // more.
                         unsigned b[2];
                         for (int half = 0; half < 2; ++half) {
                           const int depth = half * 8 + lane % 4 * 2, column = n * 8 + lane / 4;
                           b[half] =
                               ptx::pack2<bf16>(depth == column ? 1.f : 0.f, depth + 1 == column ? 1.f : 0.f);
                         }
                         ptx::mma16816<bf16>(back.tile[n], a, b[0], b[1]);
                       }
                       for (int n = 0; n < 2; ++n)
                         for (int c = 0; c < 4; ++c)
                           EXPECT_EQ(back.tile[n][c], s.tile[n][c]) << lane << " " << n << " " << c;
                     }),
            "");
}

} // namespace
} // namespace deft
