/// A GPU of the tests' driver: what is asked of it, and that all is given back.

#include "runtime/device/Device.h"

#include "tests/support/FakeCuda.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace deft::device {
namespace {

using testing::HasSubstr;

class DeviceTest : public testing::Test {
protected:
  std::shared_ptr<const Driver> driver = *Driver::load(DEFT_FAKE_CUDA);
  std::shared_ptr<Device> open() const { return *Device::open(driver, 0); }
  cu::Context current() const {
    cu::Context context = nullptr;
    EXPECT_EQ(driver->api().ctxGetCurrent(&context), cu::kSuccess);
    return context;
  }
};

std::vector<fake_cuda::Call> launches() {
  std::vector<fake_cuda::Call> calls = fake_cuda::takeCalls();
  std::erase_if(calls, [](const fake_cuda::Call &call) { return call.name != "cuLaunchKernel"; });
  return calls;
}

TEST_F(DeviceTest, FactsAreThereBeforeAContextIs) {
  (void)fake_cuda::takeCalls();
  const auto facts = lookAt(*driver, 0);
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->name, "Fake Hopper");
  EXPECT_EQ(facts->major * 10 + facts->minor, 90);
  EXPECT_EQ(facts->multiprocessors, 132);
  EXPECT_TRUE(fake_cuda::takeCalls().empty()) << "these are questions alone";
  for (const int ordinal : {-1, 3})
    EXPECT_EQ(lookAt(*driver, ordinal).error().message,
              "there is no GPU " + std::to_string(ordinal) + ", only 3");
}

TEST_F(DeviceTest, AGpuThatIsTooOldIsNotOpened) {
  EXPECT_TRUE(Device::open(driver, 1));
  const auto old = Device::open(driver, 2);
  ASSERT_FALSE(old);
  EXPECT_EQ(old.error().code, support::ErrorCode::Environment);
  EXPECT_EQ(old.error().message, "Fake Turing has compute capability 7.5, 8.0 or newer is needed");
}

TEST_F(DeviceTest, TheThreadsContextStaysWhatItWas) {
  const cu::Context before = current();
  const auto device = open();
  Buffer buffer(device);
  ASSERT_TRUE(buffer.upload(std::vector{1, 2, 3}, "numbers"));
  EXPECT_EQ(current(), before);
  {
    const Device::Current outer(*device);
    const cu::Context own = current();
    EXPECT_NE(own, before);
    const Device::Current inner(*device); // it is current already
    EXPECT_EQ(current(), own);
  }
  EXPECT_EQ(current(), before);
}

TEST_F(DeviceTest, BuffersGrowAndAreGivenBack) {
  const std::size_t before = fake_cuda::allocatedBytes();
  {
    Buffer buffer(open());
    ASSERT_TRUE(buffer.reserve(1000, "a test"));
    void *const address = buffer.as<void>();
    ASSERT_TRUE(buffer.reserve(10, "a test"));
    EXPECT_EQ(buffer.as<void>(), address) << "there is room already";
    ASSERT_TRUE(buffer.upload(std::vector<int>{7, 8, 9}, "numbers"));
    std::vector<int> read(3);
    ASSERT_TRUE(buffer.download(read.data(), 12));
    EXPECT_EQ(read, (std::vector{7, 8, 9}));
    ASSERT_TRUE(buffer.fill(1, 4));
    ASSERT_TRUE(buffer.download(read.data(), 12));
    EXPECT_EQ(read, (std::vector{0x01010101, 8, 9}));
    ASSERT_TRUE(buffer.reserve(5000, "a test"));
    EXPECT_EQ(fake_cuda::allocatedBytes(), before + 5000) << "what it had is free";
    const Buffer moved(std::move(buffer));
    EXPECT_EQ(fake_cuda::allocatedBytes(), before + 5000);
  }
  EXPECT_EQ(fake_cuda::allocatedBytes(), before);
}

TEST_F(DeviceTest, AnAllocationThatFailsSaysForWhat) {
  Buffer buffer(open());
  ASSERT_TRUE(buffer.reserve(100, "a test"));
  fake_cuda::failAt("cuMemAlloc", cu::kOutOfMemory);
  const auto failed = buffer.reserve(4096, "the partials");
  fake_cuda::failAt("cuMemAlloc", 0);
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, HasSubstr("cannot allocate 4096 bytes for the partials: "));
  EXPECT_EQ(buffer.as<void>(), nullptr) << "what was there is gone";
  EXPECT_TRUE(buffer.reserve(4096, "the partials"));
}

TEST_F(DeviceTest, NoBlocksAreNoLaunchAndOneIsNoCluster) {
  const auto device = open();
  const auto kernel = Kernel::load(device, "image", "probe_test", 128, 4096);
  ASSERT_TRUE(kernel) << kernel.error().message;
  EXPECT_EQ(kernel->blocksAtOnce(), 132);
  (void)launches();
  ASSERT_TRUE(kernel->launch(0, nullptr));
  ASSERT_TRUE(kernel->launchDependent(0, nullptr, device->stream()));
  ASSERT_TRUE(kernel->launchClusters(0, 4, nullptr, device->stream()));
  EXPECT_TRUE(launches().empty());
  ASSERT_TRUE(kernel->launch(5, nullptr));
  ASSERT_TRUE(kernel->launchClusters(8, 4, nullptr, device->stream()));
  ASSERT_TRUE(kernel->launchClusters(3, 1, nullptr, device->stream()));
  const auto made = launches();
  ASSERT_EQ(made.size(), 3U);
  EXPECT_EQ(made[0].blocks, 5U);
  EXPECT_EQ(made[1].cluster, 4);
  EXPECT_EQ(made[2].cluster, 1);
  EXPECT_EQ(made[0].stream, device->stream());
  fake_cuda::failAt("cuLaunchKernel", cu::kOutOfMemory);
  const auto failed = kernel->launch(5, nullptr);
  fake_cuda::failAt("cuLaunchKernel", 0);
  EXPECT_THAT(failed.error().message, HasSubstr("cannot launch kernel `probe_test`: "));
}

} // namespace
} // namespace deft::device
