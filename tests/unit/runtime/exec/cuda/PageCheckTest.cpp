#include "runtime/exec/cuda/PageCheck.h"

#include "tests/unit/runtime/exec/cuda/CompilesEverywhere.h"
#include "tests/unit/runtime/exec/cuda/FakeGpu.h"

#include <gmock/gmock.h>

namespace deft::exec {
namespace {

using ::testing::HasSubstr;

TEST(PageCheckTest, TheKernelCompilesForEveryTargetWithoutSpills) {
  expectCompilesEverywhere("deft_check_pages.cu", PageCheck::source());
}

// The tests' driver does what the kernel does, which runs as it is in tests/unit/templates.
TEST(PageCheckTest, APageThatTheCacheLacksIsToldOnceAlsoOfAReplay) {
  const FakeGpu gpu;
  ASSERT_TRUE(gpu.variant.cache.isPaged());
  auto made = CudaPlan::create(gpu.kernels, {.room = {}, .checksPages = true});
  if (!made && made.error().code == support::ErrorCode::Environment)
    GTEST_SKIP() << made.error().message;
  ASSERT_TRUE(made.ok()) << made.error().message;
  CudaPlan &plan = **made;
  FakeStep step(gpu, test::levelTree({1, 5}, {90, 20}), 3);
  const cu::Stream stream = makeStream(gpu);
  ASSERT_TRUE(plan.write(gpu.makePlan(step.tree)).ok());
  ASSERT_TRUE(plan.upload(stream).ok());
  CudaPointers pointers = step.pointers();
  // Of those that the plan reads: there are gaps between nodes.
  int largest = -1;
  for (const tree::Node &node : step.tree.nodes())
    for (int t = 0; t < node.tokens; ++t)
      if (const int entry = (node.location + t) / gpu.variant.cache.pageSize;
          largest < 0 || pointers.pageTable[entry] > pointers.pageTable[largest])
        largest = entry;
  pointers.cachePages = pointers.pageTable[largest] + 1;
  (void)fake_cuda::takeCalls();
  ASSERT_TRUE(plan.run(*gpu.kernels, pointers, stream).ok());
  EXPECT_EQ(fake_cuda::takeCalls().front().kernel, "deft_check_pages");
  EXPECT_TRUE(step.isRight());
  EXPECT_TRUE(plan.checkReplays().ok());

  --pointers.cachePages;
  ASSERT_TRUE(plan.run(*gpu.kernels, pointers, stream).ok());
  EXPECT_EQ(plan.checkReplays().error().message,
            "a run read entry " + std::to_string(largest) + " of the page table, which is " +
                std::to_string(pointers.cachePages) + ", and the cache has " +
                std::to_string(pointers.cachePages) + " pages");
  EXPECT_TRUE(plan.checkReplays().ok()) << "told once";

  ++pointers.cachePages;
  const auto graph = capture(gpu, stream, [&] { return plan.run(*gpu.kernels, pointers, stream); });
  const auto replay = [&] { return gpu.device->api().graphLaunch(graph, stream) == cu::kSuccess; };
  ASSERT_TRUE(replay());
  EXPECT_TRUE(plan.checkReplays().ok());
  pointers.cachePages = 1; // the graph keeps what it captured
  ASSERT_TRUE(replay());
  EXPECT_TRUE(plan.checkReplays().ok());
  const auto ofFewer = capture(gpu, stream, [&] { return plan.run(*gpu.kernels, pointers, stream); });
  ASSERT_EQ(gpu.device->api().graphLaunch(ofFewer, stream), cu::kSuccess);
  EXPECT_THAT(plan.checkReplays().error().message, HasSubstr("and the cache has 1 pages"));
}

// The fake driver's attention has the pages of the plan's variant whatever kernels are launched.
TEST(PageCheckTest, PagesAreThoseOfTheAttentionThatRuns) {
  const FakeGpu gpu;
  auto made = CudaPlan::create(gpu.kernels, {.room = {}, .checksPages = true});
  if (!made && made.error().code == support::ErrorCode::Environment)
    GTEST_SKIP() << made.error().message;
  ASSERT_TRUE(made.ok()) << made.error().message;
  FakeStep step(gpu, test::levelTree({1, 5}, {90, 20}), 3);
  ASSERT_TRUE((*made)->write(gpu.makePlan(step.tree)).ok());
  ASSERT_TRUE((*made)->upload(nullptr).ok());
  CudaPointers pointers = step.pointers();
  pointers.cachePages = 1 << 20;
  const auto firstLaunchOf = [&](const spec::Variant &variant) {
    const auto kernels = *CudaKernels::load(gpu.device, variant, gpu.set);
    (void)fake_cuda::takeCalls();
    EXPECT_TRUE((*made)->run(*kernels, pointers, nullptr).ok());
    return fake_cuda::takeCalls().front();
  };
  spec::Variant other = gpu.variant;
  other.cache.pageSize *= 2;
  const fake_cuda::Call check = firstLaunchOf(other);
  ASSERT_EQ(check.kernel, "deft_check_pages");
  EXPECT_EQ(check.argsAs<abi::PageCheckArgs>().pageSize, other.cache.pageSize);
  other.cache.pageSize = 0; // there is no table to look at
  EXPECT_EQ(firstLaunchOf(other).kernel, "deft_small_narrow");
}

TEST(PageCheckTest, NobodyLooksWhereNobodyAsks) {
  const FakeGpu gpu;
  const auto plan = gpu.makeDevicePlan({});
  FakeStep step(gpu, test::levelTree({1, 5}, {90, 20}), 3);
  ASSERT_TRUE(plan->write(gpu.makePlan(step.tree)).ok());
  ASSERT_TRUE(plan->upload(nullptr).ok());
  (void)fake_cuda::takeCalls();
  ASSERT_TRUE(plan->run(*gpu.kernels, step.pointers(), nullptr).ok());
  for (const fake_cuda::Call &call : fake_cuda::takeCalls())
    EXPECT_NE(call.kernel, "deft_check_pages");
}

} // namespace
} // namespace deft::exec
