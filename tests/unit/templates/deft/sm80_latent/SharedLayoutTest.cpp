#include "tests/device/Words.h"

#include "deft/ptx/block.cuh"
#include "deft/ptx/ldmatrix.cuh"
#include "deft/sm80_latent/shared_layout.cuh"
#include "tests/device/Conflicts.h"
#include "tests/device/DeviceConfig.h"

#include <gtest/gtest.h>

namespace deft::sm80_latent {
namespace {

/// A column is where the rows have it, however it is named, and warps read their columns without conflicts.
template <int kDim, int kSharers> void checkRows() {
  using Rows = StridedRows<f16, kDim>;
  constexpr int kStride = 2 * kSharers, kRows = 32;
  for (int row = 0; row < kRows; ++row)
    for (int column = 0; column < Rows::kColumns; ++column)
      EXPECT_EQ(Rows::template offset<kStride>(row, column % kStride, column / kStride),
                Rows::Rows::offset(row, column))
          << kDim << " " << kSharers << ": " << row << " " << column;
  test::conflicts = 0;
  EXPECT_EQ(test::runBlock({.sharedBytes = kRows * Rows::kRowBytes},
                           [&] {
                             const unsigned base = ptx::sharedAddress(ptx::dynamicShared<128>());
                             const int lane = static_cast<int>(threadIdx.x);
                             unsigned r[4];
                             for (int sharer = 0; sharer < kSharers; ++sharer)
                               for (int k = 0; (k * kSharers + sharer) * 16 < kDim; ++k)
                                 for (int row = 0; row < kRows; row += 16) {
                                   const auto read = [&](int at, int half) {
                                     return base +
                                            Rows::template offset<kStride>(row + at, 2 * sharer + half, k);
                                   };
                                   ptx::ldmatrix4(r, read(lane % 8 + lane / 16 * 8, lane / 8 % 2));
                                   ptx::ldmatrix4Transposed(r, read(lane % 16, lane / 16));
                                 }
                           }),
            "");
  EXPECT_EQ(test::conflicts, 0) << kDim;
}

TEST(Sm80LatentSharedLayoutTest, WarpsReadTheirColumnsWithoutConflicts) {
  checkRows<576, 1>();
  checkRows<576, 2>();
  checkRows<576, 4>();
  checkRows<576, 8>();
  checkRows<80, 2>();
  checkRows<128, 3>();
  checkRows<336, 5>();
}

template <int kRows, int kTokens, int kDepth, int kWarpsOf> struct Config : test::DeviceConfig {
  static constexpr bool kIsLatent = true;
  static constexpr int kQueryHeads = 16, kKvHeads = 1, kRatio = 16, kKeyDim = 576, kValueDim = 512;
  static constexpr int kTileQ = kRows, kTileKv = kTokens, kStages = kDepth, kWarps = kWarpsOf;
};

template <class C> void checkSections() {
  using L = SharedLayout<C>;
  using S = Shares<C>;
  EXPECT_EQ(S::kDimsHeld + L::kQueryDims, C::kKeyDim);
  EXPECT_EQ(S::kDimsHeld % (16 * S::kSharers), 0) << "what is held ends with a step of all warps";
  EXPECT_GE(L::kPartOffset,
            C::kStages * C::kTileKv * 1152 + (L::kQueryDims > 0 ? C::kTileQ : 0) * L::kQueryDims * 2)
      << "the ring, and queries";
  EXPECT_GE(L::kPartOffset, C::kTileQ * (1024 + 16)) << "results";
  EXPECT_EQ(L::kPartOffset % 16, 0);
  EXPECT_EQ(L::kTokenOffset, L::kPartOffset + (S::kSharers > 1 ? C::kWarps * C::kTileKv * 64 : 0));
  EXPECT_EQ(L::kRecordOffset, L::kTokenOffset + (C::kStages + 1) * C::kTileKv * 8);
  EXPECT_EQ(L::kBytes, L::kRecordOffset + (C::kStages + 1) * C::kTileKv * 12);
}

TEST(Sm80LatentSharedLayoutTest, SectionsFollowEachOther) {
  checkSections<Config<16, 16, 4, 4>>();
  checkSections<Config<32, 32, 2, 8>>();
  checkSections<Config<64, 16, 2, 8>>();
  checkSections<Config<16, 16, 2, 2>>();
}

TEST(Sm80LatentSharedLayoutTest, QueriesAreHeldAsFarAsThereAreRegisters) {
  EXPECT_EQ((Shares<Config<16, 16, 4, 4>>::kStepsHeld), 9) << "all";
  EXPECT_EQ((Shares<Config<16, 16, 4, 8>>::kStepsHeld), 5) << "all, of the warps that have more";
  EXPECT_EQ((Shares<Config<64, 16, 2, 8>>::kStepsHeld), 5) << "beside 128 registers of sums";
  EXPECT_EQ((Shares<Config<64, 16, 2, 4>>::kStepsHeld), 0) << "beside 256";
}

} // namespace
} // namespace deft::sm80_latent
