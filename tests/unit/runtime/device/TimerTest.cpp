/// What a measurement asks of the driver; times are tests/gpu's.

#include "runtime/device/Timer.h"

#include "tests/support/FakeCuda.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deft::device {
namespace {

class TimerTest : public testing::Test {
protected:
  /// The names of what is put on the stream: evictions, graphs and events.
  std::vector<std::string> timed(const TimerOptions &options) {
    const auto timer = Timer::create(device);
    EXPECT_TRUE(timer) << timer.error().message;
    (void)fake_cuda::takeCalls();
    enqueued = 0;
    const auto timing = timer->time(
        [&]() -> support::Result<void> {
          ++enqueued;
          return {};
        },
        options);
    EXPECT_TRUE(timing) << timing.error().message;
    EXPECT_EQ(timing->medianUs, 1000) << "the driver's millisecond";
    std::vector<std::string> names;
    for (const fake_cuda::Call &call : fake_cuda::takeCalls())
      if (call.name == "cuLaunchKernel")
        names.push_back(call.kernel);
      else if (call.name == "cuGraphLaunch" || call.name == "cuEventRecord")
        names.push_back(call.name);
    return names;
  }

  std::shared_ptr<Device> device = *Device::open(*Driver::load(DEFT_FAKE_CUDA), 0);
  int enqueued = 0;
};

TEST_F(TimerTest, EachRunStandsBetweenEventsBehindAnEviction) {
  std::vector<std::string> expected;
  for (int run = 0; run < 1 + 3; ++run) // the first one is not counted
    expected.insert(expected.end(), {"deft_evict_l2", "cuEventRecord", "cuGraphLaunch", "cuEventRecord"});
  EXPECT_EQ(timed({.repeats = 3}), expected);
  EXPECT_EQ(enqueued, 1) << "captured once";
}

TEST_F(TimerTest, AWarmRunComesBehindOneThatIsNotTimed) {
  const auto names = timed({.repeats = 1, .coldL2 = false});
  EXPECT_THAT(std::vector(names.begin(), names.begin() + 5),
              testing::ElementsAre("deft_evict_l2", "cuGraphLaunch", "cuEventRecord", "cuGraphLaunch",
                                   "cuEventRecord"));
}

TEST_F(TimerTest, WhatCannotBeEnqueuedIsTheError) {
  const auto timing = timeOnDevice(device,
                                   []() -> support::Result<void> {
                                     return support::Error{support::ErrorCode::Diagnostics, "no plan", ""};
                                   },
                                   {});
  ASSERT_FALSE(timing);
  EXPECT_EQ(timing.error().message, "no plan");
  EXPECT_TRUE(timeOnDevice(device, []() -> support::Result<void> { return {}; }, {.repeats = 1}))
      << "the stream captures no more";
}

TEST_F(TimerTest, ADriverThatFailsIsTheError) {
  const auto timer = Timer::create(device);
  fake_cuda::failAt("cuGraphLaunch", cu::kOutOfMemory);
  const auto timing = timer->time([]() -> support::Result<void> { return {}; }, {});
  fake_cuda::failAt("cuGraphLaunch", 0);
  ASSERT_FALSE(timing);
  EXPECT_THAT(timing.error().message, testing::StartsWith("cannot run the timed graph: "));
}

} // namespace
} // namespace deft::device
