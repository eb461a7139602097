#include "runtime/exec/cuda/SmallKernel.h"

#include "runtime/nvrtc/Nvrtc.h"
#include "tests/support/FakeCuda.h"
#include "tests/support/SetVariable.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deft::exec {
namespace {

class SmallKernelTest : public testing::Test {
protected:
  void SetUp() override {
    if (const auto nvrtc = nvrtc::Nvrtc::load(); !nvrtc)
      GTEST_SKIP() << nvrtc.error().message;
  }

  module_cache::TestFolder folder_;
  test::SetVariable cache_{"DEFT_CACHE_DIR", folder_.path()};
  std::shared_ptr<device::Device> device_ = *device::Device::open(*device::Driver::load(DEFT_FAKE_CUDA), 0);
};

TEST_F(SmallKernelTest, ItIsCompiledOnceAndThenInTheCache) {
  const std::string source = "extern \"C\" __global__ void probe_small(int *at) { *at = 1; }";
  const auto entries = [&] {
    std::size_t count = 0;
    for (const auto &file : std::filesystem::recursive_directory_iterator(folder_.path()))
      count += file.path().filename() == "kernel.cu";
    return count;
  };
  const auto kernel = loadSmallKernel(device_, "probe_small", source, 64);
  ASSERT_TRUE(kernel) << kernel.error().message;
  EXPECT_EQ(kernel->entry(), "probe_small");
  EXPECT_EQ(entries(), 1U);
  EXPECT_TRUE(loadSmallKernel(device_, "probe_small", source, 64));
  EXPECT_EQ(entries(), 1U);
  EXPECT_TRUE(loadSmallKernel(device_, "probe_small", source + "\n", 64));
  EXPECT_EQ(entries(), 2U) << "of another text";
}

TEST_F(SmallKernelTest, ATextThatDoesNotCompileIsAnError) {
  const auto kernel =
      loadSmallKernel(device_, "probe_small", "extern \"C\" __global__ void probe_small() { nonsense; }", 64);
  ASSERT_FALSE(kernel);
  EXPECT_THAT(kernel.error().message, testing::HasSubstr("probe_small"));
}

} // namespace
} // namespace deft::exec
