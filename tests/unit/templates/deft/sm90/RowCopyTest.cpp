#include "tests/device/Words.h"

#include "deft/ptx/block.cuh"
#include "deft/sm90/row_copy.cuh"
#include "tests/device/DeviceConfig.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace deft::sm90 {
namespace {

template <int kDim> struct Config : test::WideConfig {
  static constexpr int kKeyDim = kDim, kValueDim = kDim, kStages = 2;
};

/// Rows from anywhere, four at a time, are where the layout says; what is beyond their columns is left alone.
template <int kDim> void copyRows(unsigned seed) {
  using C = Config<kDim>;
  using L = Layout<C>;
  std::mt19937 random(seed);
  constexpr int kSources = 300;
  std::vector<std::uint16_t> memory(kSources * kDim + 8);
  auto *tensor =
      reinterpret_cast<std::uint16_t *>((reinterpret_cast<std::uintptr_t>(memory.data()) + 15) / 16 * 16);
  for (int i = 0; i < kSources * kDim; ++i)
    tensor[i] = static_cast<std::uint16_t>(random());
  std::array<int, 64> source{};
  for (int &row : source)
    row = static_cast<int>(random() % kSources);
  EXPECT_EQ(test::runBlock({.sharedBytes = L::kKeyTileBytes, .seed = seed},
                           [&] {
                             char *shared = ptx::dynamicShared<1024>();
                             const unsigned tile = ptx::sharedAddress(shared);
                             const RowCopy<C> copier(static_cast<int>(threadIdx.x));
                             const char *column = copier.column(tensor);
                             for (int first = 0; first < 64; first += RowCopy<C>::kRows)
                               copier.copy(tile, first, column,
                                           static_cast<unsigned>(
                                               source[static_cast<std::size_t>(first + copier.row())]) *
                                               (kDim / kRowUnit<C>));
                             ptx::cpAsyncCommit();
                             ptx::cpAsyncWait<0>();
                             __syncwarp();
                             for (int row = static_cast<int>(threadIdx.x); row < 64; row += 32)
                               for (int c = 0; c < L::kKeyTileBytes / L::kBlockBytes * 8; ++c)
                                 for (int i = 0; i < 8; ++i) {
                                   std::uint16_t got;
                                   std::memcpy(&got, shared + L::offset(row, c) + i * 2, 2);
                                   const std::uint16_t want =
                                       c < L::kKeyColumns
                                           ? tensor[source[static_cast<std::size_t>(row)] * kDim + c * 8 + i]
                                           : std::uint16_t{0xffff};
                                   ASSERT_EQ(got, want) << kDim << " row " << row << " column " << c * 8 + i;
                                 }
                           }),
            "");
}

TEST(RowCopyTest, RowsAreWhereTheLayoutSays) {
  for (unsigned seed = 1; seed <= 3; ++seed) {
    copyRows<32>(seed);
    copyRows<48>(seed);
    copyRows<64>(seed);
    copyRows<80>(seed);
    copyRows<112>(seed);
    copyRows<128>(seed);
    copyRows<192>(seed);
    copyRows<256>(seed);
  }
}

} // namespace
} // namespace deft::sm90
