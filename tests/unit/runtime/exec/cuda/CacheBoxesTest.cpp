#include "runtime/exec/cuda/CacheBoxes.h"

#include "tests/support/LatentTensors.h"
#include "tests/unit/runtime/exec/cuda/FakeGpu.h"

#include <gmock/gmock.h>

#include <cstring>
#include <vector>

namespace deft::exec {
namespace {

/// Which copies a cache of so many tokens a page gets (0: contiguous), and how many maps were made for them.
std::pair<bool, int> boxesOf(int pageSize, int ordinal = 0, int dim = 80,
                             spec::DType dtype = spec::DType::BF16) {
  FakeGpu gpu(ordinal);
  gpu.variant.tensors = spec::Tensors::alike(dim);
  gpu.variant.tensors.k.dtype = gpu.variant.tensors.v.dtype = dtype;
  gpu.variant.cache.pageSize = pageSize;
  (void)countCalls();
  abi::AttendArgs args{};
  args.hasMaps = 1;
  fillCacheBoxes(*gpu.device, gpu.variant, cacheLayoutsOf(gpu.variant), args);
  return {args.hasMaps != 0, countCalls()["cuTensorMapEncodeTiled"]};
}

TEST(CacheBoxesTest, TwoSizesOfBoxesForKeysAndValues) {
  for (const int pageSize : {0, 1, 16, 64})
    EXPECT_EQ(boxesOf(pageSize), std::pair(true, 4)) << pageSize;
}

TEST(CacheBoxesTest, WholeTilesWherePagesAndColumnsHaveRoomForThem) {
  for (const int pageSize : {0, 1, 64, 128})
    EXPECT_EQ(boxesOf(pageSize, 0, 128), std::pair(true, 6)) << pageSize;
  for (const int pageSize : {16, 32, 96})
    EXPECT_EQ(boxesOf(pageSize, 0, 128), std::pair(true, 4)) << pageSize;
  EXPECT_EQ(boxesOf(1, 0, 80), std::pair(true, 4));
  EXPECT_EQ(boxesOf(1, 0, 32), std::pair(true, 6)); // the box has room for all columns
}

/// Each tensor by its own columns.
TEST(CacheBoxesTest, KeysAndValuesHaveBoxesOfTheirOwn) {
  FakeGpu gpu;
  gpu.variant.tensors = spec::Tensors::alike(192);
  gpu.variant.tensors.v.dim = gpu.variant.tensors.out.dim = 128;
  gpu.variant.cache.pageSize = 64;
  abi::AttendArgs args{};
  fillCacheBoxes(*gpu.device, gpu.variant, cacheLayoutsOf(gpu.variant), args);
  ASSERT_TRUE(args.hasMaps);
  const auto columnsOf = [](const abi::TensorMap(&maps)[3]) {
    std::array<unsigned long long, 2> columns{}; // of the boxes of pieces; the last map is of whole tiles
    for (std::size_t i = 0; i < columns.size(); ++i) {
      fake_cuda::TensorMap made;
      std::memcpy(&made, &maps[i], sizeof made);
      columns[i] = made.sizes[0];
    }
    return columns;
  };
  EXPECT_EQ(columnsOf(args.kBoxes), (std::array{192ull, 192ull}));
  EXPECT_EQ(columnsOf(args.vBoxes), (std::array{128ull, 128ull}));
}

/// Half as many columns: pairs of bytes.
TEST(CacheBoxesTest, BytesComeByBoxesWhereOneHoldsARow) {
  for (const int dim : {80, 112, 128})
    EXPECT_EQ(boxesOf(1, 0, dim, spec::DType::F8E4M3), std::pair(true, 6)) << dim;
  EXPECT_EQ(boxesOf(16, 0, 128, spec::DType::F8E5M2), std::pair(true, 4));
  EXPECT_EQ(boxesOf(1, 0, 144, spec::DType::F8E4M3), std::pair(false, 0)); // copying warps convert those
}

/// Halves of V's blocks of 64 columns, and those that V does not have beside them.
TEST(CacheBoxesTest, OfALatentCacheVComesInHalvesAndTheRestAlone) {
  FakeGpu gpu;
  gpu.variant.kvHeads = 1;
  gpu.variant.tensors = test::latentTensors();
  gpu.variant.cache.pageSize = 64;
  std::byte pool[2];
  abi::AttendArgs args{};
  args.k = pool;
  args.v = pool + 1;
  (void)countCalls();
  fillCacheBoxes(*gpu.device, gpu.variant, cacheLayoutsOf(gpu.variant), args);
  EXPECT_EQ(args.hasMaps, 1);
  EXPECT_EQ(countCalls()["cuTensorMapEncodeTiled"], 6);
  const auto expectTile = [](const abi::TensorMap &map, const void *address, unsigned blocks,
                             unsigned taken) {
    fake_cuda::TensorMap made;
    std::memcpy(&made, &map, sizeof made);
    EXPECT_EQ(made.address, address);
    ASSERT_EQ(made.rank, 5U);
    EXPECT_THAT(made.sizes,
                testing::ElementsAre(64, 64, blocks, 1, 1 << 30)); // columns, tokens, blocks, heads, pages
    EXPECT_THAT(made.box, testing::ElementsAre(64, 64, taken, 1, 1));
  };
  expectTile(args.kBoxes[2], pool, 8, 4);
  expectTile(args.vBoxes[2], pool + 1, 1, 1);
}

TEST(CacheBoxesTest, BytesOfALatentCacheAreConvertedOnTheirWay) {
  FakeGpu gpu;
  gpu.variant.kvHeads = 1;
  gpu.variant.cache = {64, spec::PageOrder::Nhd};
  for (const int scaleColumns : {0, 16}) {
    gpu.variant.tensors = test::latentBytes(64, 16, scaleColumns);
    abi::AttendArgs args{};
    args.hasMaps = 1;
    fillCacheBoxes(*gpu.device, gpu.variant, cacheLayoutsOf(gpu.variant), args);
    EXPECT_EQ(args.hasMaps, 0) << scaleColumns;
  }
}

TEST(CacheBoxesTest, PagesThatABoxWouldLeaveAreCopiedTokenByToken) {
  for (const int pageSize : {7, 8, 24})
    EXPECT_EQ(boxesOf(pageSize), std::pair(false, 0)) << pageSize;
}

TEST(CacheBoxesTest, OlderGpusHaveNone) { EXPECT_EQ(boxesOf(0, 1), std::pair(false, 0)); }

TEST(CacheBoxesTest, TheMapsOfACacheAreMadeOnce) {
  FakeGpu gpu;
  CacheBoxes boxes;
  std::byte pools[8];
  abi::AttendArgs args{};
  CacheLayouts cache{{1024, 64, 16}, {1024, 64, 16}};
  const auto made = [&](const void *k, const void *v) {
    args.k = k;
    args.v = v;
    args.hasMaps = 2;
    (void)countCalls();
    boxes.fill(*gpu.device, gpu.variant, cache, 0, args);
    EXPECT_EQ(args.hasMaps, 1);
    return countCalls()["cuTensorMapEncodeTiled"];
  };
  for (int step = 0; step < 3; ++step)
    for (int layer = 0; layer < 4; ++layer)
      EXPECT_EQ(made(pools + 2 * layer, pools + 2 * layer + 1), step == 0 ? 4 : 0);
  EXPECT_EQ(made(pools + 4, pools + 5), 0); // out of turn
  EXPECT_EQ(made(pools + 2, pools + 3), 0);
  EXPECT_EQ(made(pools + 2, pools + 5), 4);
  for (abi::CacheLayout *const layout : {&cache.k, &cache.v}) { // each by itself
    layout->tokenStride = 128;
    EXPECT_EQ(made(pools + 2, pools + 3), 4);
  }
  gpu.variant.tensors = spec::Tensors::alike(8);
  EXPECT_EQ(made(pools + 2, pools + 3), 4);
}

TEST(CacheBoxesTest, WhatIsRememberedIsWhatWasMade) {
  FakeGpu gpu;
  CacheBoxes boxes;
  std::byte pools[4];
  abi::AttendArgs first{}, again{};
  first.k = again.k = pools;
  first.v = again.v = pools + 1;
  const CacheLayouts cache{{1024, 64, 16}, {1024, 64, 16}};
  boxes.fill(*gpu.device, gpu.variant, cache, 0, first);
  boxes.fill(*gpu.device, gpu.variant, cache, 0, again);
  EXPECT_EQ(std::memcmp(&first, &again, sizeof first), 0);
  fake_cuda::failAt("cuTensorMapEncodeTiled", 1);
  first.k = again.k = pools + 2;
  boxes.fill(*gpu.device, gpu.variant, cache, 0, first);
  boxes.fill(*gpu.device, gpu.variant, cache, 0, again);
  fake_cuda::failAt("cuTensorMapEncodeTiled", 0);
  EXPECT_EQ(again.hasMaps, 0); // what the driver has refused once it is not asked again
}

TEST(CacheBoxesTest, AHostOfEverNewCachesIsServedToo) {
  const FakeGpu gpu;
  CacheBoxes boxes;
  abi::AttendArgs args{};
  CacheLayouts cache{{1024, 64, 16}, {1024, 64, 16}};
  std::vector<std::byte> pools(5000);
  for (const std::byte &pool : pools) {
    args.k = args.v = &pool;
    boxes.fill(*gpu.device, gpu.variant, cache, 0, args);
    EXPECT_EQ(args.hasMaps, 1);
  }
  (void)countCalls();
  boxes.fill(*gpu.device, gpu.variant, cache, 0, args);
  EXPECT_EQ(countCalls()["cuTensorMapEncodeTiled"], 0);
}

TEST(CacheBoxesTest, ACacheThatReachesBeyondTheMapsIsCopiedTokenByToken) {
  const FakeGpu gpu;
  CacheBoxes boxes;
  const CacheLayouts cache{{1024, 64, 16}, {1024, 64, 16}};
  constexpr int kReach = 1 << 30;
  for (const int pages : {kReach, kReach + 1, 0}) {
    abi::AttendArgs args{};
    boxes.fill(*gpu.device, gpu.variant, cache, pages, args);
    EXPECT_EQ(args.hasMaps != 0, pages <= kReach) << pages;
  }
}

TEST(CacheBoxesTest, WhatTheDriverRefusesIsCopiedTokenByToken) {
  fake_cuda::failAt("cuTensorMapEncodeTiled", 1);
  EXPECT_EQ(boxesOf(0).first, false);
  fake_cuda::failAt("cuTensorMapEncodeTiled", 0);
  EXPECT_EQ(boxesOf(0).first, true);
}

} // namespace
} // namespace deft::exec
