#include "runtime/exec/cuda/PointerRules.h"

#include "tests/support/VariantBuilder.h"

#include <gtest/gtest.h>

namespace deft::exec {
namespace {

/// 4 query heads, 2 KV heads and 64 columns, in pages of 16 tokens.
class PointerRulesTest : public testing::Test {
protected:
  PointerRulesTest() {
    variant_.queryHeads = 4;
    variant_.kvHeads = 2;
    variant_.tensors = spec::Tensors::alike(64);
    variant_.cache.pageSize = 16;
    pointers_.cache = cacheLayoutsOf(variant_);
  }

  std::string error() const {
    const auto checked = checkPointers(variant_, pointers_);
    return checked ? "none" : checked.error().message;
  }

  spec::Variant variant_;
  CudaPointers pointers_;
};

TEST_F(PointerRulesTest, RowsArePackedWhereNobodySaysOtherwise) {
  EXPECT_EQ(qStrideOf(variant_, pointers_), 256);
  EXPECT_EQ(outStrideOf(variant_, pointers_), 256);
  pointers_.qStride = 512;
  pointers_.outStride = 320;
  EXPECT_EQ(qStrideOf(variant_, pointers_), 512);
  EXPECT_EQ(outStrideOf(variant_, pointers_), 320);
  EXPECT_EQ(error(), "none");
}

TEST_F(PointerRulesTest, PointersThatCannotBeReadBy16Bytes) {
  pointers_.v = reinterpret_cast<const void *>(0x1008);
  EXPECT_EQ(error(), "v does not begin at a multiple of 16 bytes");
}

TEST_F(PointerRulesTest, RowsThatOverlapOrLieBetweenUnits) {
  pointers_.outStride = 240;
  EXPECT_EQ(error(), "the row stride of out is 240 elements, not between the 256 of a row and 2147483647");
  pointers_.outStride = 0;
  pointers_.qStride = 264;
  EXPECT_EQ(error(), "the row stride of q is 264 elements, not a multiple of 16");
  pointers_.qStride = 1LL << 31;
  EXPECT_EQ(error(),
            "the row stride of q is 2147483648 elements, not between the 256 of a row and 2147483647");
}

TEST_F(PointerRulesTest, StridesOfCachesThatLieBetweenUnits) {
  pointers_.cache.k.headStride = 72;
  EXPECT_EQ(error(), "the head stride of k is 72 elements, not a multiple of 16");
  variant_.kvHeads = 1; // then it is never taken
  EXPECT_EQ(error(), "none");
  pointers_.cache.v.tokenStride = 136;
  EXPECT_EQ(error(), "the token stride of v is 136 elements, not a multiple of 16");
  pointers_.cache.v.tokenStride = 128;
  pointers_.cache.v.pageStride = 2056;
  EXPECT_EQ(error(), "the page stride of v is 2056 elements, not a multiple of 16");
  variant_.cache.pageSize = 0;
  EXPECT_EQ(error(), "none");
}

TEST_F(PointerRulesTest, GroupsOfHeadsOfALatentCacheReadTheSameTokens) {
  const abi::CacheLayout layout{1024, 64, 16};
  EXPECT_EQ(placesOf(variant_, layout).headStride, 1U); // in units of 16 elements
  variant_.kvHeads = 1;
  variant_.tensors.valueInKey = true;
  const abi::CachePlaces places = placesOf(variant_, layout);
  EXPECT_EQ(places.headStride, 0U);
  EXPECT_EQ(places.tokenStride, 4U);
  EXPECT_EQ(places.pageStride, 64U);
}

TEST_F(PointerRulesTest, ColumnsOfALatentCacheThatLieApartAreNamedAsTheyAreGiven) {
  const spec::DType dtype = variant_.tensors.q.dtype;
  variant_.tensors = {{dtype, 80}, {dtype, 80}, {dtype, 64}, {dtype, 64}, true};
  variant_.kvHeads = 1;
  pointers_.cache = {{16 * 64, 64, 64}, {16 * 16, 16, 16}};
  pointers_.v = reinterpret_cast<const void *>(0x1008);
  EXPECT_EQ(error(), "k_rope does not begin at a multiple of 16 bytes");
  pointers_.v = reinterpret_cast<const void *>(0x1010);
  EXPECT_EQ(error(), "none");
  pointers_.cache.v.tokenStride = 24;
  EXPECT_EQ(error(), "the token stride of k_rope is 24 elements, not a multiple of 16");
}

TEST_F(PointerRulesTest, KernelsCountInUnits) {
  const abi::CachePlaces places = placesOf(variant_, {1LL << 35, 128, 4096});
  EXPECT_EQ(places.pageStride, 1u << 31);
  EXPECT_EQ(places.tokenStride, 8u);
  EXPECT_EQ(places.headStride, 256u);
}

TEST_F(PointerRulesTest, RowsOfAnOddNumberOfEightsAreCountedInThese) {
  variant_.tensors = spec::Tensors::alike(72);
  pointers_.cache = cacheLayoutsOf(variant_);
  pointers_.qStride = 4 * 72 + 8;
  EXPECT_EQ(error(), "none");
  EXPECT_EQ(placesOf(variant_, pointers_.cache.k).tokenStride, 18u);
  pointers_.qStride = 4 * 72 + 4;
  EXPECT_EQ(error(), "the row stride of q is 292 elements, not a multiple of 8");
}

TEST_F(PointerRulesTest, CachesBeyondWhatKernelsCount) {
  pointers_.cachePages = 1 << 20;
  pointers_.cache.k.pageStride = 1 << 16;
  EXPECT_EQ(error(), "none"); // 2^36 elements
  ++pointers_.cachePages;
  EXPECT_EQ(error(),
            "the 1048577 pages of k, 65536 elements apart, reach beyond the 68719476736 elements that "
            "kernels count");
}

TEST_F(PointerRulesTest, ContiguousCachesBeyondWhatKernelsCount) {
  variant_.cache.pageSize = 0;
  pointers_.cache = cacheLayoutsOf(variant_);
  pointers_.cachePages = 1 << 28;
  pointers_.cache.v.tokenStride = 256; // beside K
  EXPECT_EQ(error(), "none");          // 2^36 elements
  ++pointers_.cachePages;
  EXPECT_EQ(error(), "the 268435457 tokens of v, 256 elements apart, reach beyond the 68719476736 elements "
                     "that kernels count");
}

} // namespace
} // namespace deft::exec
