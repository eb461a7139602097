#include "tests/device/Words.h"

#include "deft/ptx/block.cuh"
#include "deft/ptx/ldmatrix.cuh"
#include "deft/sm80/shared_layout.cuh"
#include "tests/device/Conflicts.h"
#include "tests/device/DeviceConfig.h"

#include <gtest/gtest.h>

#include <set>

namespace deft::sm80 {
namespace {

template <int kDim> void checkRows() {
  using Rows = RowLayout<f16, kDim>;
  constexpr int kRows = 64;
  std::set<unsigned> places;
  for (int row = 0; row < kRows; ++row)
    for (int column = 0; column < Rows::kColumns; ++column) {
      const unsigned offset = Rows::offset(row, column);
      EXPECT_EQ(offset % 16, 0u);
      EXPECT_LE(offset + 16, static_cast<unsigned>(kRows * Rows::kRowBytes)) << kDim;
      EXPECT_TRUE(places.insert(offset).second) << kDim << ": " << row << " " << column;
    }
  // As the algorithm reads K, queries and V, at every column and from every row that it begins with.
  test::conflicts = 0;
  EXPECT_EQ(test::runBlock({.sharedBytes = kRows * Rows::kRowBytes},
                           [&] {
                             const unsigned base = ptx::sharedAddress(ptx::dynamicShared<128>());
                             const int lane = static_cast<int>(threadIdx.x);
                             unsigned r[4];
                             for (int row = 0; row < kRows; row += 16)
                               for (int column = 0; column < Rows::kColumns; column += 2) {
                                 ptx::ldmatrix4(r, base + Rows::offset(row + lane % 8 + lane / 16 * 8,
                                                                       column + lane / 8 % 2));
                                 ptx::ldmatrix4Transposed(
                                     r, base + Rows::offset(row + lane % 16, column + lane / 16));
                               }
                           }),
            "");
  EXPECT_EQ(test::conflicts, 0) << kDim;
}

TEST(SharedLayoutTest, RowsAreReadWithoutConflicts) {
  checkRows<16>();
  checkRows<32>();
  checkRows<48>();
  checkRows<64>();
  checkRows<80>();
  checkRows<96>();
  checkRows<112>();
  checkRows<128>();
  checkRows<192>();
  checkRows<256>();
}

/// So that the test above can fail.
TEST(SharedLayoutTest, RowsWithoutSwizzleWouldConflict) {
  test::conflicts = 0;
  EXPECT_EQ(test::runBlock({.sharedBytes = 16 * 128},
                           [&] {
                             const unsigned base = ptx::sharedAddress(ptx::dynamicShared<128>());
                             unsigned r[4];
                             ptx::ldmatrix4(r, base + threadIdx.x % 16 * 128 + threadIdx.x / 16 * 16);
                           }),
            "");
  EXPECT_EQ(test::conflicts, 4 * 7);
}

template <int kDim, int kStagesOf, int kTile, int kWarpsOf> struct Config : test::Sm80Config {
  static constexpr int kKeyDim = kDim, kValueDim = kDim, kStages = kStagesOf, kTileQ = kTile,
                       kWarps = kWarpsOf;
};

struct Unlike : Config<192, 3, 32, 4> {
  static constexpr int kValueDim = 80;
};

template <class C> void checkSections() {
  using L = SharedLayout<C>;
  EXPECT_EQ(L::kValueOffset, C::kStages * L::kKeyTileBytes);
  EXPECT_GE(L::kQueryOffset, L::kValueOffset + C::kStages * L::kValueTileBytes) << "the ring";
  EXPECT_GE(L::kQueryOffset, C::kWarps * 16 * (L::kJoinStride + 2) * 4)
      << "sums that are joined, and their facts";
  EXPECT_EQ(L::kTokenOffset, L::kQueryOffset + L::kQueryBytes);
  EXPECT_EQ(L::kTokenOffset % 8, 0);
  EXPECT_EQ(L::kRecordOffset, L::kTokenOffset + (C::kStages + 1) * C::kTileKv * 8);
  EXPECT_EQ(L::kBytes, L::kRecordOffset + (C::kStages + 1) * C::kTileKv * 12);
  EXPECT_EQ(L::kQueryBytes > 0, C::kKeyDim > 128);
  EXPECT_EQ(L::kJoinStride % 4, 0) << "sums are read by 16 bytes";
}

TEST(SharedLayoutTest, SectionsFollowEachOther) {
  checkSections<Config<64, 2, 16, 2>>();
  checkSections<Config<80, 3, 32, 4>>();
  checkSections<Config<128, 2, 64, 4>>();
  checkSections<Config<256, 2, 16, 8>>();
  checkSections<Unlike>();
}

} // namespace
} // namespace deft::sm80
