#include "tests/support/VariantBuilder.h"
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

TEST(CudaParamsTest, ArraysOfTheHostAreCopiedAndThoseOfTheDeviceAreLeftWhereTheyAre) {
  const FakeGpu gpu;
  test::VariantBuilder build;
  build.param("cap", spec::ScalarType::F32, spec::Param::Shape::Scalar);
  build.param("slopes", spec::ScalarType::F32, spec::Param::Shape::PerQueryHead);
  build.table("buckets", spec::ScalarType::I32, 3);
  const std::vector<int> buckets(3);
  const std::vector<ParamValue> values = {{{2.5}, {}}, {{1, 2, 3, 4}, {}}, {{}, {}, buckets.data()}};
  const auto params = *CudaParams::upload(gpu.device, build.variant, values);
  EXPECT_EQ(params->slots()[0].f32, 2.5f);
  EXPECT_NE(params->slots()[1].f32Array, values[1].f32.data());
  EXPECT_EQ(params->slots()[2].i32Array, buckets.data());
}

} // namespace
} // namespace deft::exec
