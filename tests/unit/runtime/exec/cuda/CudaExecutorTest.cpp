#include "runtime/exec/cuda/CudaExecutor.h"

#include "tests/unit/runtime/exec/cuda/FakeGpu.h"

#include <gmock/gmock.h>

namespace deft::exec {
namespace {

using ::testing::Pair;
using ::testing::UnorderedElementsAre;

/// A tree with inputs of the host.
struct Step {
  Step(const FakeGpu &gpu, int branches, std::uint64_t seed) : tree(test::levelTree({1, branches}, {60, 7})) {
    const auto placement = tree::placeInCache(
        tree,
        {.pageSize = gpu.variant.cache.pageSize, .order = tree::PlacementOrder::Scattered, .seed = seed});
    inputs = makeRandomInputs(gpu.variant, tree, *placement, {}, seed);
    plan = gpu.makePlan(tree);
  }

  bool isRight(const FakeGpu &gpu, const Outputs &outputs) const {
    return reference::check(gpu.variant, tree, inputs, outputs).passed();
  }

  tree::KvTree tree;
  Inputs inputs;
  plan::Plan plan;
};

std::unique_ptr<CudaExecutor> makeExecutor(const FakeGpu &gpu) {
  auto executor = CudaExecutor::create(gpu.device, gpu.variant, gpu.set);
  EXPECT_TRUE(executor.ok());
  return std::move(*executor);
}

TEST(CudaExecutorTest, ARunGoesFromInputsOfTheHostToItsOutputs) {
  const FakeGpu gpu;
  const auto executor = makeExecutor(gpu);
  CudaInputs on(gpu.device, gpu.variant);
  Outputs outputs;
  for (const int branches : {9, 3, 20}) { // smaller and larger ones in the memory that is there
    const Step step(gpu, branches, 5);
    ASSERT_TRUE(on.load(step.inputs).ok());
    ASSERT_TRUE(executor->run(step.plan, on, outputs).ok());
    EXPECT_TRUE(step.isRight(gpu, outputs)) << branches;
  }
}

/// Also where rows of K are no multiple of 16 elements, which places are counted in elsewhere.
TEST(CudaExecutorTest, KeysAndValuesHaveDimsOfTheirOwn) {
  for (const int keyDim : {48, 8, 24}) {
    FakeGpu gpu;
    gpu.widenKeys(keyDim);
    const auto executor = makeExecutor(gpu);
    CudaInputs on(gpu.device, gpu.variant);
    Outputs outputs;
    const Step step(gpu, 20, 5);
    ASSERT_TRUE(on.load(step.inputs).ok());
    ASSERT_TRUE(executor->run(step.plan, on, outputs).ok());
    EXPECT_TRUE(step.isRight(gpu, outputs)) << keyDim;
  }
}

TEST(CudaExecutorTest, OnePlanRunsOverAnyInputs) {
  const FakeGpu gpu;
  const auto executor = makeExecutor(gpu);
  const Step first(gpu, 9, 5);
  Step second(gpu, 9, 5);
  for (std::uint16_t &half : second.inputs.q)
    half ^= 0x8000; // other queries, where the first ones are
  CudaInputs onFirst(gpu.device, gpu.variant), onSecond(gpu.device, gpu.variant);
  ASSERT_TRUE(onFirst.load(first.inputs).ok());
  ASSERT_TRUE(onSecond.load(second.inputs).ok());
  ASSERT_TRUE(executor->prepare(first.plan).ok());
  (void)fake_cuda::takeCalls();
  ASSERT_TRUE(executor->enqueue(onFirst).ok());
  ASSERT_TRUE(executor->enqueue(onSecond).ok());
  EXPECT_THAT(countCalls(), UnorderedElementsAre(Pair("cuLaunchKernel", 4)));
  Outputs outputs;
  ASSERT_TRUE(onFirst.read(9, outputs).ok());
  EXPECT_TRUE(first.isRight(gpu, outputs));
  EXPECT_FALSE(second.isRight(gpu, outputs));
  ASSERT_TRUE(onSecond.read(9, outputs).ok());
  EXPECT_TRUE(second.isRight(gpu, outputs));
}

TEST(CudaExecutorTest, ACapturedRunLaunchesAsManyBlocksAsAnyOther) {
  const FakeGpu gpu;
  const auto executor = makeExecutor(gpu);
  const Step large(gpu, 20, 5), small(gpu, 3, 5);
  CudaInputs on(gpu.device, gpu.variant);
  Outputs outputs;
  ASSERT_TRUE(on.load(large.inputs).ok());
  ASSERT_TRUE(executor->run(large.plan, on, outputs).ok());
  ASSERT_TRUE(executor->prepare(small.plan).ok());
  (void)fake_cuda::takeCalls();
  (void)capture(gpu, gpu.device->stream(), [&] { return executor->enqueue(on); });
  std::vector<int> items;
  for (const fake_cuda::Call &call : fake_cuda::takeCalls())
    if (call.kernel == "deft_small_narrow")
      items.push_back(call.argsAs<abi::AttendArgs>().itemCount);
  EXPECT_EQ(items, std::vector<int>{static_cast<int>(small.plan.items.size())});
}

TEST(CudaExecutorTest, APlanOfMoreQueriesThanTheInputsIsRefused) {
  const FakeGpu gpu;
  const auto executor = makeExecutor(gpu);
  const Step large(gpu, 9, 5), small(gpu, 3, 5);
  CudaInputs on(gpu.device, gpu.variant);
  ASSERT_TRUE(on.load(small.inputs).ok());
  ASSERT_TRUE(executor->prepare(large.plan).ok());
  const auto refused = executor->enqueue(on);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "the plan has 9 queries, the inputs have 3");
}

} // namespace
} // namespace deft::exec
