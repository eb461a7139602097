#include "runtime/exec/cuda/DeviceMark.h"

#include "tests/support/FakeCuda.h"

#include <gtest/gtest.h>

namespace deft::exec {
namespace {

class DeviceMarkTest : public testing::Test {
protected:
  std::shared_ptr<device::Device> device = *device::Device::open(*device::Driver::load(DEFT_FAKE_CUDA), 0);
};

/// As kernels note it.
unsigned long long noted(unsigned which, unsigned value) {
  return static_cast<unsigned long long>(value) << 32 | (which + 1ULL);
}

TEST_F(DeviceMarkTest, WhatIsNotedIsTakenOnce) {
  const auto mark = DeviceMark::create(device, "a test");
  ASSERT_TRUE(mark);
  EXPECT_EQ(mark->takeNoted(), std::nullopt);
  *mark->onDevice() = noted(0, 7);
  const auto first = mark->takeNoted();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->which, 0) << "the first one is told from none";
  EXPECT_EQ(first->value, 7);
  EXPECT_EQ(mark->takeNoted(), std::nullopt);
  *mark->onDevice() = noted(2147483646, 2147483647);
  const auto last = mark->takeNoted();
  ASSERT_TRUE(last);
  EXPECT_EQ(last->which, 2147483646);
  EXPECT_EQ(last->value, 2147483647);
  *mark->onDevice() = noted(3, static_cast<unsigned>(-5));
  EXPECT_EQ(mark->takeNoted()->value, -5);
  *mark->onDevice() = 99;
  EXPECT_EQ(mark->take(), 99U);
  EXPECT_EQ(mark->take(), 0U);
}

TEST_F(DeviceMarkTest, MemoryThatCannotBeHadIsNamed) {
  fake_cuda::failAt("cuMemHostAlloc", 2);
  const auto mark = DeviceMark::create(device, "the mark of pages");
  fake_cuda::failAt("cuMemHostAlloc", 0);
  ASSERT_FALSE(mark);
  EXPECT_NE(mark.error().message.find("for the mark of pages"), std::string::npos);
}

} // namespace
} // namespace deft::exec
