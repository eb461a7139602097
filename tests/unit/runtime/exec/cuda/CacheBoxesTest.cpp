#include "runtime/exec/cuda/CacheBoxes.h"

#include "tests/unit/runtime/exec/cuda/FakeGpu.h"

namespace deft::exec {
namespace {

/// Which copies a cache of so many tokens a page gets (0: contiguous), and how many maps were made for them.
std::pair<bool, int> boxesOf(int pageSize, int ordinal = 0, int dim = 16) {
  FakeGpu gpu(ordinal);
  gpu.variant.tensors = spec::Tensors::alike(dim);
  gpu.variant.cache.paged = pageSize > 0;
  gpu.variant.cache.pageSize = pageSize;
  (void)countCalls();
  abi::AttendArgs args{};
  args.hasMaps = 1;
  fillCacheBoxes(*gpu.device, gpu.variant, args);
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
}

TEST(CacheBoxesTest, PagesThatABoxWouldLeaveAreCopiedTokenByToken) {
  for (const int pageSize : {7, 8, 24})
    EXPECT_EQ(boxesOf(pageSize), std::pair(false, 0)) << pageSize;
}

TEST(CacheBoxesTest, OlderGpusHaveNone) { EXPECT_EQ(boxesOf(0, 1), std::pair(false, 0)); }

TEST(CacheBoxesTest, WhatTheDriverRefusesIsCopiedTokenByToken) {
  fake_cuda::failAt("cuTensorMapEncodeTiled", 1);
  EXPECT_EQ(boxesOf(0).first, false);
  fake_cuda::failAt("cuTensorMapEncodeTiled", 0);
  EXPECT_EQ(boxesOf(0).first, true);
}

} // namespace
} // namespace deft::exec
