#include "tests/unit/runtime/exec/cuda/FakeGpu.h"

namespace deft::exec {
namespace {

constexpr int kAtOnce = 132; ///< blocks of a kernel, on device 0 of the tests' driver

// Six query heads: 22 merged queries are as many rows as there are blocks at once.
TEST(CudaKernelsTest, AMergedRowHasABlockWhereRowsAreFewAndAWarpWhereTheyAreMany) {
  const FakeGpu gpu;
  ASSERT_EQ(gpu.kernels->merge().blocksAtOnce(), kAtOnce);
  EXPECT_EQ(gpu.kernels->mergeBlocks(0), 0u);
  EXPECT_EQ(gpu.kernels->mergeBlocks(1), 6u);
  EXPECT_EQ(gpu.kernels->mergeBlocks(22), 132u);
  EXPECT_EQ(gpu.kernels->mergeBlocks(23), 35u); // 138 rows by four warps each
  EXPECT_EQ(gpu.kernels->mergeBlocks(352), 528u);
  EXPECT_EQ(gpu.kernels->mergeBlocks(353), 528u); // four waves, whose warps go on
  EXPECT_EQ(gpu.kernels->mergeBlocks(2'000'000'000), 528u);
}

TEST(CudaKernelsTest, ALaunchHasAFewWavesOfBlocks) {
  const FakeGpu gpu;
  EXPECT_EQ(gpu.kernels->attendBlocks(0, 10), 20u); // for each of two KV heads
  EXPECT_EQ(gpu.kernels->attendBlocks(0, 2'000'000'000), 8u * kAtOnce);
}

} // namespace
} // namespace deft::exec
