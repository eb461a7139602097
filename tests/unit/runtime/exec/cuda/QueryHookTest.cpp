#include "templates/deft/query_abi.h"
#include "tests/unit/runtime/exec/cuda/FakeGpu.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
#include <vector>

/// What a run does where a spec has the hook `query`.
namespace deft::exec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

tree::KvTree someTree(int branches = 9) { return test::levelTree({1, 3, branches}, {100, 40, 20}); }

TEST(QueryHookTest, AHookOfTheQueryIsAppliedOnceBeforeTheAttention) {
  const FakeGpu gpu(0, 2, false, /*hasQuery=*/true);
  const cu::Stream stream = makeStream(gpu);
  const auto plan = gpu.makeDevicePlan({});
  for (const int branches : {3, 60}) { // the room grows
    FakeStep step(gpu, someTree(branches), 4);
    ASSERT_TRUE(plan->write(gpu.makePlan(step.tree)).ok());
    ASSERT_TRUE(plan->upload(stream).ok());
    ASSERT_TRUE(plan->poison().ok());
    (void)fake_cuda::takeCalls();
    const CudaPointers pointers = step.pointers();
    ASSERT_TRUE(plan->run(*gpu.kernels, pointers, stream).ok());
    EXPECT_TRUE(step.isRight()) << branches;
    const auto calls = fake_cuda::takeCalls();
    ASSERT_GE(calls.size(), 3u); // a phase may have no items
    EXPECT_EQ(calls.front().kernel, "deft_small_queries");
    const auto args = calls.front().argsAs<abi::QueryArgs>();
    EXPECT_EQ(args.q, pointers.q);
    for (std::size_t attend = 1; attend + 1 < calls.size(); ++attend) {
      EXPECT_EQ(calls[attend].argsAs<abi::AttendArgs>().q, args.made);
      EXPECT_EQ(calls[attend].argsAs<abi::AttendArgs>().qStride, 6 * 16);
    }
    EXPECT_EQ(calls.back().argsAs<abi::MergeArgs>().queryPos, args.queryPos);
  }
}

/// Of a plan's attend kernels the first alone: the others begin once it has ended, and the merge beside the
/// last.
TEST(QueryHookTest, TheAttentionBeginsBesideTheKernelThatMakesItsQueries) {
  const auto dependents = [](bool hasQuery) {
    const FakeGpu gpu(0, 2, false, hasQuery);
    const cu::Stream stream = makeStream(gpu);
    const auto plan = gpu.makeDevicePlan({});
    FakeStep step(gpu, someTree(60), 4);
    EXPECT_TRUE(plan->write(gpu.makePlan(step.tree)).ok());
    EXPECT_TRUE(plan->upload(stream).ok());
    (void)fake_cuda::takeCalls();
    EXPECT_TRUE(plan->run(*gpu.kernels, step.pointers(), stream).ok());
    std::vector<bool> are;
    for (const fake_cuda::Call &call : fake_cuda::takeCalls())
      are.push_back(call.isDependent);
    return are;
  };
  EXPECT_THAT(dependents(true), ElementsAre(false, true, false, true));
  EXPECT_THAT(dependents(false), ElementsAre(false, false, true));
}

TEST(QueryHookTest, AGraphAppliesAHookOfTheQueryToAsManyAsThePlanHas) {
  const FakeGpu gpu(0, 1, false, /*hasQuery=*/true);
  const cu::Stream stream = makeStream(gpu);
  const auto plan = gpu.makeDevicePlan({});
  FakeStep step(gpu, someTree(40), 4);
  ASSERT_TRUE(plan->write(gpu.makePlan(step.tree)).ok());
  ASSERT_TRUE(plan->upload(stream).ok());
  (void)fake_cuda::takeCalls();
  const auto graph = capture(gpu, stream, [&] { return plan->run(*gpu.kernels, step.pointers(), stream); });
  const auto calls = fake_cuda::takeCalls();
  const auto launch = std::find_if(calls.begin(), calls.end(), [](const fake_cuda::Call &call) {
    return call.kernel == "deft_small_queries";
  });
  ASSERT_NE(launch, calls.end());
  const auto args = launch->argsAs<abi::QueryArgs>();
  EXPECT_EQ(args.queries, plan->room().queries);
  // The first queries of the same tree: what lies behind them in the plan's memory is nobody's.
  tree::KvTree few = step.tree;
  while (few.queries().size() > 5)
    ASSERT_TRUE(few.removeQuery(static_cast<int>(few.queries().size()) - 1).ok());
  ASSERT_TRUE(plan->write(gpu.makePlan(few)).ok());
  ASSERT_TRUE(plan->upload(stream).ok());
  ASSERT_TRUE(plan->poison().ok());
  ASSERT_EQ(gpu.device->api().graphLaunch(graph, stream), cu::kSuccess);
  const auto *made = static_cast<const std::uint16_t *>(args.made);
  for (int query = 0; query < args.queries; ++query)
    EXPECT_EQ(made[query * 6 * 16] == 0xffff, query >= 5) << query; // NaN where nothing was written
}

TEST(QueryHookTest, LayersWithoutAHookOfTheQueryShareThePlanOfThoseWithOne) {
  const FakeGpu plain, hooked(0, 1, false, /*hasQuery=*/true);
  const auto load = [](const FakeGpu &kernelsOf, const FakeGpu &on) {
    return *CudaKernels::load(on.device, kernelsOf.variant, kernelsOf.set);
  };
  const cu::Stream stream = makeStream(hooked);
  const auto plan = hooked.makeDevicePlan({});
  FakeStep step(hooked, someTree(), 4);
  ASSERT_TRUE(plan->write(hooked.makePlan(step.tree)).ok());
  ASSERT_TRUE(plan->upload(stream).ok());
  const auto without = load(plain, hooked);
  (void)fake_cuda::takeCalls();
  ASSERT_TRUE(plan->run(*without, step.pointers(), stream).ok());
  EXPECT_EQ(fake_cuda::takeCalls().front().argsAs<abi::AttendArgs>().q, step.pointers().q);

  const auto other = plain.makeDevicePlan({});
  ASSERT_TRUE(other->write(plain.makePlan(step.tree)).ok());
  ASSERT_TRUE(other->upload(stream).ok());
  EXPECT_THAT(other->run(*load(hooked, plain), step.pointers(), stream).error().message,
              HasSubstr("has no hook `query`"));
}

/// Where V is as wide as V of the plan's attention, and q is wider.
TEST(QueryHookTest, APlanHasRoomForTheQueriesOfItsOwnAttention) {
  FakeGpu narrow(0, 1, false, /*hasQuery=*/true), wide(0, 1, false, /*hasQuery=*/true);
  wide.widenKeys(48);
  const cu::Stream stream = makeStream(narrow);
  const auto plan = narrow.makeDevicePlan({});
  FakeStep step(narrow, someTree(), 4);
  ASSERT_TRUE(plan->write(narrow.makePlan(step.tree)).ok());
  ASSERT_TRUE(plan->upload(stream).ok());
  const auto kernels = *CudaKernels::load(narrow.device, wide.variant, wide.set);
  EXPECT_EQ(plan->run(*kernels, step.pointers(), stream).error().message,
            "the plan was made for `small`, and `small` has other heads, tiles or another device");
}

} // namespace
} // namespace deft::exec
