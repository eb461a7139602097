#include "runtime/device/HostMemory.h"

#include "tests/support/FakeCuda.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace deft::device {
namespace {

class HostMemoryTest : public testing::Test {
protected:
  ~HostMemoryTest() override { fake_cuda::setEventsDone(true); }
  std::shared_ptr<Device> device = *Device::open(*Driver::load(DEFT_FAKE_CUDA), 0);
};

TEST_F(HostMemoryTest, ItIsZeroWheneverItHasGrown) {
  const std::size_t before = fake_cuda::allocatedBytes();
  {
    HostMemory memory(device);
    EXPECT_EQ(memory.onDevice<int>(), nullptr);
    const auto isZero = [&] {
      return std::all_of(memory.as<unsigned char>(), memory.as<unsigned char>() + memory.bytes(),
                         [](unsigned char byte) { return byte == 0; });
    };
    ASSERT_TRUE(memory.reserve(100, "a test"));
    EXPECT_TRUE(isZero());
    std::fill_n(memory.as<unsigned char>(), 100, static_cast<unsigned char>(7));
    ASSERT_TRUE(memory.reserve(50, "a test"));
    EXPECT_EQ(memory.as<unsigned char>()[99], 7) << "there was room";
    ASSERT_TRUE(memory.reserve(300, "a test"));
    EXPECT_EQ(memory.bytes(), 300U);
    EXPECT_TRUE(isZero());
    EXPECT_EQ(static_cast<void *>(memory.onDevice<int>()), memory.as<void>());
    const HostMemory moved(std::move(memory));
    EXPECT_EQ(moved.bytes(), 300U);
    EXPECT_EQ(fake_cuda::allocatedBytes(), before + 300);
  }
  EXPECT_EQ(fake_cuda::allocatedBytes(), before);
}

TEST_F(HostMemoryTest, WhatCannotBeLockedIsSaid) {
  HostMemory memory(device);
  fake_cuda::failAt("cuMemHostAlloc", cu::kOutOfMemory);
  const auto failed = memory.reserve(64, "the watch of a plan");
  fake_cuda::failAt("cuMemHostAlloc", 0);
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message,
              testing::StartsWith("cannot lock 64 bytes of the host's memory for the watch of a plan: "));
  EXPECT_EQ(memory.bytes(), 0U);
  EXPECT_TRUE(memory.reserve(64, "the watch of a plan"));
}

TEST_F(HostMemoryTest, WhatNoDeviceSeesIsNoRoomForLess) {
  const std::size_t before = fake_cuda::allocatedBytes();
  HostMemory memory(device);
  fake_cuda::failAt("cuMemHostGetDevicePointer", cu::kOutOfMemory);
  const auto failed = memory.reserve(64, "a plan");
  fake_cuda::failAt("cuMemHostGetDevicePointer", 0);
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, testing::StartsWith("cannot map the host's memory for a plan: "));
  EXPECT_EQ(fake_cuda::allocatedBytes(), before);
  ASSERT_TRUE(memory.reserve(32, "a plan"));
  EXPECT_NE(memory.onDevice<int>(), nullptr);
}

TEST_F(HostMemoryTest, AMarkIsReachedWhenTheDeviceIsThere) {
  Mark mark(device);
  ASSERT_TRUE(mark.create());
  EXPECT_TRUE(mark.isReached()) << "nothing stands before it";
  EXPECT_TRUE(mark.wait("nothing"));
  fake_cuda::setEventsDone(false);
  ASSERT_TRUE(mark.record(device->stream(), "a copy"));
  EXPECT_FALSE(mark.isReached());
  fake_cuda::setEventsDone(true);
  EXPECT_TRUE(mark.isReached());
  fake_cuda::setEventsDone(false);
  EXPECT_TRUE(mark.isReached()) << "it is known, and nobody is asked again";
  ASSERT_TRUE(mark.record(device->stream(), "a copy"));
  EXPECT_FALSE(mark.isReached()) << "it has been put elsewhere";
  (void)fake_cuda::takeCalls();
  EXPECT_TRUE(mark.wait("a copy"));
  const auto calls = fake_cuda::takeCalls();
  EXPECT_EQ(std::count_if(calls.begin(), calls.end(),
                          [](const fake_cuda::Call &call) { return call.name == "cuEventSynchronize"; }),
            1);
  EXPECT_TRUE(mark.isReached());
}

TEST_F(HostMemoryTest, AWaitThatFailsSaysForWhat) {
  Mark mark(device);
  ASSERT_TRUE(mark.create());
  fake_cuda::setEventsDone(false);
  ASSERT_TRUE(mark.record(device->stream(), "a copy"));
  fake_cuda::failAt("cuEventSynchronize", cu::kOutOfMemory);
  const auto failed = mark.wait("the copy of a plan");
  fake_cuda::failAt("cuEventSynchronize", 0);
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, testing::StartsWith("the copy of a plan failed: "));
  EXPECT_FALSE(mark.isReached());
}

} // namespace
} // namespace deft::device
