#include "runtime/exec/cuda/PlanWatch.h"

#include "tests/support/FakeCuda.h"

#include <gtest/gtest.h>

namespace deft::exec {
namespace {

/// Kernels read and write the words where abi::PlanWatch says that they are.
TEST(PlanWatchTest, HostAndDeviceMeanTheSameWords) {
  const auto device = *device::Device::open(*device::Driver::load(DEFT_FAKE_CUDA), 0);
  auto watch = PlanWatch::create(device);
  ASSERT_TRUE(watch) << watch.error().message;
  abi::PlanWatch *const words = watch->onDevice();
  EXPECT_EQ(words->treeGeneration + words->planGeneration + words->staleSeen + words->freeRuns, 0U);
  watch->treeGeneration()->store(11);
  watch->setPlan(12);
  watch->setFreeRuns(13);
  EXPECT_EQ(words->treeGeneration, 11U);
  EXPECT_EQ(words->planGeneration, 12U);
  EXPECT_EQ(words->freeRuns, 13U);
  EXPECT_EQ(watch->tree(), 11U);
  words->staleSeen = 14;
  EXPECT_EQ(watch->takeStaleSeen(), 14U);
  EXPECT_EQ(watch->takeStaleSeen(), 0U);
}

/// A tree may outlive the plans that followed it.
TEST(PlanWatchTest, TheWordOfATreeLivesAsLongAsSomebodyHoldsIt) {
  const std::size_t before = fake_cuda::allocatedBytes();
  std::shared_ptr<std::atomic<std::uint64_t>> word;
  {
    const auto device = *device::Device::open(*device::Driver::load(DEFT_FAKE_CUDA), 0);
    word = PlanWatch::create(device)->treeGeneration();
  }
  word->store(5);
  EXPECT_EQ(word->load(), 5U);
  EXPECT_GT(fake_cuda::allocatedBytes(), before);
  word.reset();
  EXPECT_EQ(fake_cuda::allocatedBytes(), before);
}

} // namespace
} // namespace deft::exec
