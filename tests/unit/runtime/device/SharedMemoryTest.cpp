#include "runtime/device/SharedMemory.h"

#include "tests/support/FakeCuda.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

namespace deft::device {
namespace {

class SharedMemoryTest : public testing::Test {
protected:
  std::shared_ptr<Device> device_ = Device::open(Driver::load(DEFT_FAKE_CUDA).value()).value();
};

int countOf(const std::string &function) {
  int count = 0;
  for (const fake_cuda::Call &call : fake_cuda::takeCalls())
    count += call.name == function;
  return count;
}

TEST_F(SharedMemoryTest, IsTheSameMemoryForWhoeverOpensIt) {
  auto made = SharedMemory::make(device_, 1000, "results");
  ASSERT_TRUE(made) << made.error().message;
  auto *const bytes = static_cast<unsigned char *>(made->address());
  EXPECT_EQ(bytes[999], 0);
  const int handle = made->handle().value();
  {
    const auto opened = SharedMemory::open(device_, handle, 1000, "results of rank 1");
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_NE(opened->address(), made->address());
    static_cast<unsigned char *>(opened->address())[999] = 7;
  }
  EXPECT_EQ(bytes[999], 7);
  EXPECT_EQ(close(handle), 0) << "it stayed the caller's";
}

TEST_F(SharedMemoryTest, NothingIsLeftWhereAStepFails) {
  for (const char *function : {"cuMemCreate", "cuMemMap", "cuMemSetAccess"}) {
    (void)fake_cuda::takeCalls();
    fake_cuda::failAt(function, cu::kOutOfMemory);
    const auto failed = SharedMemory::make(device_, 1000, "results");
    fake_cuda::failAt(function, 0);
    ASSERT_FALSE(failed) << function;
    EXPECT_THAT(failed.error().message,
                testing::EndsWith("results on Fake Hopper: out of memory (CUDA_ERROR_OUT_OF_MEMORY)"));
    EXPECT_EQ(countOf("cuMemRelease"), std::string(function) == "cuMemCreate" ? 0 : 1) << function;
  }
  fake_cuda::failAt("cuMemImportFromShareableHandle", cu::kNoDevice);
  const auto failed = SharedMemory::open(device_, 1, 1000, "results of rank 1");
  fake_cuda::failAt("cuMemImportFromShareableHandle", 0);
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, testing::StartsWith("cannot take results of rank 1 on Fake Hopper"));
}

} // namespace
} // namespace deft::device
