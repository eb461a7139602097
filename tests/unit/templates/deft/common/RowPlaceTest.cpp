#include "tests/device/Words.h"

#include "deft/common/row_place.cuh"
#include "deft/types.cuh"

#include <gtest/gtest.h>

namespace deft {
namespace {

template <int kPage, int kDim = 80> struct Config {
  static constexpr int kKeyDim = kDim, kValueDim = kDim, kPageSize = kPage;
};

template <int kDim = 80> long long elementsOf(unsigned place) {
  const char *const none = nullptr;
  return (atPlace<Config<0, kDim>, bf16>(none, place) - none) / 2;
}

TEST(RowPlaceTest, RowsOfQueriesMayBeWiderThanTheirHeads) {
  abi::AttendArgs args{};
  args.qStride = 7 * 80 + 16;
  EXPECT_EQ(elementsOf(queryPlace<Config<0>>(args, 5, 3)), 5 * (7 * 80 + 16) + 3 * 80);
  args.qStride = 1 << 20; // far beyond 32 bits of elements
  EXPECT_EQ(elementsOf(queryPlace<Config<0>>(args, 60'000, 1)), 60'000LL * (1 << 20) + 80);
}

TEST(RowPlaceTest, RowsOfAnOddNumberOfEightsAreCountedInThese) {
  abi::AttendArgs args{};
  args.qStride = 7 * 72 + 8;
  EXPECT_EQ(elementsOf<72>(queryPlace<Config<0, 72>>(args, 5, 3)), 5 * (7 * 72 + 8) + 3 * 72);
}

TEST(RowPlaceTest, TokensAreWhereTheStridesSay) {
  const abi::CachePlaces cache{1000, 10, 100};
  EXPECT_EQ(tokenPlace<Config<16>>(cache, 2, 3, 5), 3250u);
  EXPECT_EQ(tokenPlace<Config<1>>(cache, 2, 3, 0), 3200u);
  EXPECT_EQ(tokenPlace<Config<0>>(cache, 2, 3, 0), 230u) << "contiguous: a token";
}

TEST(RowPlaceTest, PoolsOf128GiBAreReached) {
  const abi::CachePlaces cache{4'000'000'000u, 8, 0};
  EXPECT_EQ(elementsOf(tokenPlace<Config<16>>(cache, 0, 1, 15)), 16 * 4'000'000'120LL);
}

} // namespace
} // namespace deft
