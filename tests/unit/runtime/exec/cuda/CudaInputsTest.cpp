#include "runtime/exec/cuda/CudaInputs.h"

#include "tests/unit/runtime/exec/cuda/FakeGpu.h"

#include <algorithm>
#include <cmath>

namespace deft::exec {
namespace {

Inputs inputsOf(const FakeGpu &gpu, int queries) {
  tree::KvTree tree = test::levelTree({1, queries}, {30, 5});
  const auto placement = tree::placeInCache(tree, {.pageSize = gpu.variant.cache.pageSize});
  return makeRandomInputs(gpu.variant, tree, *placement, {}, 1);
}

template <typename Values> bool areAll(const Values &values, std::uint16_t wanted) {
  return std::all_of(values.begin(), values.end(), [&](std::uint16_t value) { return value == wanted; });
}

TEST(CudaInputsTest, WhatIsLoadedIsWhereThePointersSay) {
  const FakeGpu gpu;
  CudaInputs on(gpu.device, gpu.variant);
  const Inputs inputs = inputsOf(gpu, 4);
  ASSERT_TRUE(on.load(inputs).ok());
  const CudaPointers &pointers = on.pointers();
  // The fake driver's device memory is the host's.
  EXPECT_TRUE(std::equal(inputs.q.begin(), inputs.q.end(), static_cast<const std::uint16_t *>(pointers.q)));
  EXPECT_TRUE(std::equal(inputs.k.begin(), inputs.k.end(), static_cast<const std::uint16_t *>(pointers.k)));
  EXPECT_TRUE(std::equal(inputs.v.begin(), inputs.v.end(), static_cast<const std::uint16_t *>(pointers.v)));
  EXPECT_TRUE(std::equal(inputs.pageTable.begin(), inputs.pageTable.end(), pointers.pageTable));
  EXPECT_EQ(pointers.pages, static_cast<int>(inputs.pageTable.size()));
  EXPECT_EQ(pointers.cache.k.tokenStride, inputs.cache.k.tokenStride);
  EXPECT_EQ(pointers.cache.v.headStride, inputs.cache.v.headStride);
  EXPECT_NE(pointers.out, nullptr);
  EXPECT_NE(pointers.lse, nullptr);
}

TEST(CudaInputsTest, WithoutAnLseThereIsNoMemoryForOne) {
  const FakeGpu gpu;
  spec::Variant variant = gpu.variant;
  variant.withLse = false;
  CudaInputs on(gpu.device, variant);
  ASSERT_TRUE(on.load(inputsOf(gpu, 4)).ok());
  EXPECT_EQ(on.pointers().lse, nullptr);
  Outputs outputs;
  ASSERT_TRUE(on.clearOutputs(4).ok());
  ASSERT_TRUE(on.read(4, outputs).ok());
  EXPECT_TRUE(outputs.lse.empty());
}

TEST(CudaInputsTest, LessIsLoadedWithoutAllocating) {
  const FakeGpu gpu;
  CudaInputs on(gpu.device, gpu.variant);
  ASSERT_TRUE(on.load(inputsOf(gpu, 9)).ok());
  (void)fake_cuda::takeCalls();
  ASSERT_TRUE(on.load(inputsOf(gpu, 4)).ok());
  const auto calls = countCalls();
  EXPECT_EQ(calls.count("cuMemAlloc") + calls.count("cuMemFree"), 0u);
  EXPECT_EQ(calls.at("cuMemcpyHtoDAsync"), gpu.variant.cache.isPaged() ? 4 : 3);
}

TEST(CudaInputsTest, OutputsThatNobodyWritesAreNan) {
  const FakeGpu gpu;
  CudaInputs on(gpu.device, gpu.variant);
  ASSERT_TRUE(on.load(inputsOf(gpu, 4)).ok());
  ASSERT_TRUE(on.clearOutputs(3).ok());
  Outputs outputs;
  ASSERT_TRUE(on.read(3, outputs).ok());
  EXPECT_EQ(outputs.out.size(), std::size_t{3} * 6 * 16);
  EXPECT_TRUE(areAll(outputs.out, 0xffff));
  EXPECT_EQ(outputs.lse.size(), std::size_t{3} * 6);
  EXPECT_TRUE(std::all_of(outputs.lse.begin(), outputs.lse.end(), [](float lse) { return std::isnan(lse); }));
}

TEST(CudaInputsTest, PoisonReachesWhatLargerInputsLeave) {
  const FakeGpu gpu;
  CudaInputs on(gpu.device, gpu.variant);
  const Inputs many = inputsOf(gpu, 9), few = inputsOf(gpu, 4);
  ASSERT_TRUE(on.load(many).ok());
  ASSERT_TRUE(on.poisonInputs().ok());
  ASSERT_TRUE(on.load(few).ok());
  const auto *q = static_cast<const std::uint16_t *>(on.pointers().q);
  EXPECT_TRUE(std::equal(few.q.begin(), few.q.end(), q));
  EXPECT_TRUE(areAll(std::span(q + few.q.size(), many.q.size() - few.q.size()), 0xffff));
}

TEST(CudaInputsTest, MoreQueriesThanWereLoadedAreRefused) {
  const FakeGpu gpu;
  CudaInputs on(gpu.device, gpu.variant);
  ASSERT_TRUE(on.load(inputsOf(gpu, 4)).ok());
  Outputs outputs;
  for (const auto &refused : {on.clearOutputs(5), on.read(5, outputs)}) {
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().message, "the plan has 5 queries, the inputs have 4");
  }
}

} // namespace
} // namespace deft::exec
