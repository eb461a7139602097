#include "runtime/exec/Half.h"
#include "tests/unit/runtime/exec/cuda/FakeGpu.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <thread>

namespace deft::exec {
namespace {

using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

tree::KvTree someTree(int branches = 9) { return test::levelTree({1, 3, branches}, {100, 40, 20}); }

TEST(CudaPlanTest, ResultsAreRightForEveryPartitionAndEdgeTree) {
  for (const int phases : {1, 2}) {
    const FakeGpu gpu(0, phases);
    const cu::Stream stream = makeStream(gpu);
    const auto plan = gpu.makeDevicePlan({});
    for (auto &[name, tree] : test::edgeTrees())
      for (const auto partition : {spec::Partition::Query, spec::Partition::Node, spec::Partition::Flatten,
                                   spec::Partition::Union, spec::Partition::Greedy}) {
        FakeStep step(gpu, tree, 1);
        config::Config config = gpu.kernels->config();
        config.partition = partition;
        ASSERT_TRUE(plan->write(gpu.makePlan(step.tree, config)).ok());
        ASSERT_TRUE(plan->upload(stream).ok());
        const auto ran = plan->run(*gpu.kernels, step.pointers(), stream);
        ASSERT_TRUE(ran.ok()) << name << ": " << (ran.ok() ? "" : ran.error().message);
        EXPECT_TRUE(step.isRight()) << name;
      }
  }
}

TEST(CudaPlanTest, AnUploadIsOneCopyAndARunOnlyLaunches) {
  const FakeGpu gpu;
  const cu::Stream stream = makeStream(gpu);
  const auto plan = gpu.makeDevicePlan({});
  FakeStep step(gpu, someTree(), 2);
  const plan::Plan made = gpu.makePlan(step.tree);
  ASSERT_TRUE(plan->write(made).ok());
  (void)fake_cuda::takeCalls();

  ASSERT_TRUE(plan->write(made).ok());
  EXPECT_THAT(countCalls(), UnorderedElementsAre()); // on the host alone
  ASSERT_TRUE(plan->upload(stream).ok());
  EXPECT_THAT(countCalls(), UnorderedElementsAre(Pair("cuMemcpyHtoDAsync", 1), Pair("cuEventRecord", 1)));
  ASSERT_TRUE(plan->upload(stream).ok());
  EXPECT_THAT(countCalls(), UnorderedElementsAre()); // it is there

  ASSERT_TRUE(plan->run(*gpu.kernels, step.pointers(), stream).ok());
  const auto calls = fake_cuda::takeCalls();
  ASSERT_EQ(calls.size(), 2u);
  for (const fake_cuda::Call &call : calls) {
    EXPECT_EQ(call.name, "cuLaunchKernel");
    EXPECT_EQ(call.stream, stream);
    EXPECT_NE(call.context, nullptr);
  }
  EXPECT_EQ(calls[0].kernel, "deft_small_narrow");
  EXPECT_EQ(calls[1].kernel, "deft_small_merge");
  EXPECT_EQ(calls[0].argsAs<abi::AttendArgs>().itemCount, static_cast<int>(made.items.size()));
  EXPECT_EQ(calls[1].argsAs<abi::MergeArgs>().mergeCount, static_cast<int>(made.mergeQuery.size()));
  EXPECT_EQ(calls[1].argsAs<abi::MergeArgs>().watch, nullptr); // the host has looked by itself
}

TEST(CudaPlanTest, BlocksAskAheadForAllOfASmallPlanAndForNothingBehindIt) {
  const FakeGpu gpu;
  const cu::Stream stream = makeStream(gpu);
  const auto plan = gpu.makeDevicePlan({});
  FakeStep step(gpu, someTree(), 2);
  const plan::Plan made = gpu.makePlan(step.tree);
  ASSERT_TRUE(plan->write(made).ok());
  ASSERT_TRUE(plan->upload(stream).ok());
  const auto linesOf = [](std::size_t bytes) { return static_cast<int>((bytes + 127) / 128); };
  CudaPointers pointers = step.pointers();
  const auto launch = [&] {
    (void)fake_cuda::takeCalls();
    EXPECT_TRUE(plan->run(*gpu.kernels, pointers, stream).ok());
    return fake_cuda::takeCalls().front().argsAs<abi::AttendArgs>();
  };
  const abi::AttendArgs args = launch();
  const auto *begin = reinterpret_cast<const std::byte *>(args.callerIndex);
  EXPECT_EQ(args.planLines,
            linesOf(reinterpret_cast<const std::byte *>(args.runs + made.runs.size()) - begin));
  EXPECT_EQ(args.tableLines, linesOf(static_cast<std::size_t>(pointers.pages) * sizeof(int)));
  EXPECT_GT(args.tableLines, 0);

  pointers.pages = 1 << 30; // nobody waits for so much
  EXPECT_EQ(launch().tableLines, 4096);
  pointers.pages = 0;
  EXPECT_EQ(launch().tableLines, 0);
}

TEST(CudaPlanTest, AHeadsItemsFollowEachOtherWhereMuchIsReadAgainByKernelsThatDeal) {
  for (const bool deals : {false, true}) {
    const FakeGpu gpu(0, 1, deals);
    const cu::Stream stream = makeStream(gpu);
    const auto plan = gpu.makeDevicePlan({});
    FakeStep step(gpu, someTree(), 2);
    config::Config config = gpu.kernels->config();
    for (const auto partition : {spec::Partition::Node, spec::Partition::Query}) {
      const bool isReadAgain = partition == spec::Partition::Query;
      config.partition = partition;
      ASSERT_TRUE(plan->write(gpu.makePlan(step.tree, config)).ok());
      ASSERT_TRUE(plan->upload(stream).ok());
      const auto run = [&] { return plan->run(*gpu.kernels, step.pointers(), stream); };
      const auto launched = [] {
        for (const fake_cuda::Call &call : fake_cuda::takeCalls())
          if (call.name == "cuLaunchKernel") // the first is the attention's
            return call.argsAs<abi::AttendArgs>();
        return abi::AttendArgs{};
      };
      (void)fake_cuda::takeCalls();
      ASSERT_TRUE(run().ok());
      EXPECT_EQ(launched().byHead, deals && isReadAgain);
      if (!isReadAgain)
        continue; // a captured plan keeps its room
      (void)capture(gpu, stream, run);
      EXPECT_FALSE(launched().byHead) << "empty items would stand between the heads'";
    }
  }
}

TEST(CudaPlanTest, PoisonedScratchMemoryIsNaNAlsoBehindTheNextPlansAndMakesNoRunWrong) {
  const FakeGpu gpu;
  const cu::Stream stream = makeStream(gpu);
  const auto plan = gpu.makeDevicePlan({});
  FakeStep large(gpu, someTree(), 2), small(gpu, someTree(2), 3);
  const plan::Plan ofLarge = gpu.makePlan(large.tree);
  for (FakeStep *step : {&large, &small, &small}) {
    ASSERT_TRUE(plan->write(gpu.makePlan(step->tree)).ok());
    ASSERT_TRUE(plan->upload(stream).ok());
    ASSERT_TRUE(plan->poison().ok());
    (void)fake_cuda::takeCalls();
    ASSERT_TRUE(plan->run(*gpu.kernels, step->pointers(), stream).ok());
    EXPECT_TRUE(step->isRight());
    const auto args = fake_cuda::takeCalls().back().argsAs<abi::MergeArgs>(); // its memory is the host's
    ASSERT_TRUE(plan->poison().ok());
    const auto rows = static_cast<std::ptrdiff_t>(ofLarge.partialSlots) * gpu.variant.queryHeads;
    ASSERT_GT(rows, 0);
    const auto isNaN = [](float value) { return std::isnan(value); };
    EXPECT_TRUE(std::all_of(args.partialLse, args.partialLse + rows, isNaN));
    const auto *values = static_cast<const std::uint16_t *>(args.partialOut);
    EXPECT_TRUE(std::all_of(values, values + rows * gpu.variant.tensors.out.dim, [&](std::uint16_t value) {
      return std::isnan(exec::toFloat(value, gpu.variant.tensors.out.dtype));
    }));
  }
}

TEST(CudaPlanTest, AGraphComputesThePlanThatWasUploadedLast) {
  for (const int phases : {1, 2}) {
    const FakeGpu gpu(0, phases);
    const cu::Stream stream = makeStream(gpu);
    PlanRoom room{
        {.queries = 64, .runs = 2000, .mergedQueries = 64, .mergeSlots = 4000, .partialSlots = 4000}, {}};
    room.items.assign(static_cast<std::size_t>(phases), 600);
    const auto plan = gpu.makeDevicePlan({.room = room});
    // All steps read and write the same memory, as a captured graph does: so one set of inputs, many trees
    // over it.
    FakeStep step(gpu, test::randomForest(3, {.nodes = 30, .tokens = 60, .queries = 40}), 3);
    ASSERT_TRUE(plan->write(gpu.makePlan(step.tree)).ok());
    ASSERT_TRUE(plan->upload(stream).ok());
    const CudaPointers pointers = step.pointers();
    const auto graph = capture(gpu, stream, [&] { return plan->run(*gpu.kernels, pointers, stream); });
    EXPECT_FALSE(step.isRight()); // nothing ran yet
    for (const int chunk : {8, 64, 16, 500, 24})
      for (const auto partition :
           {spec::Partition::NodeChunk, spec::Partition::Query, spec::Partition::Union}) {
        config::Config config = gpu.kernels->config();
        config.chunkTokens = chunk;
        config.partition = partition;
        const auto written = plan->write(gpu.makePlan(step.tree, config));
        ASSERT_TRUE(written.ok()) << written.error().message;
        ASSERT_TRUE(plan->upload(stream).ok());
        ASSERT_EQ(gpu.device->api().graphLaunch(graph, stream), cu::kSuccess);
        EXPECT_TRUE(step.isRight()) << "chunk " << chunk << ", phases " << phases;
      }
  }
}

TEST(CudaPlanTest, WhatAGraphHasCapturedIsFixed) {
  const FakeGpu gpu;
  const cu::Stream stream = makeStream(gpu);
  const auto plan = gpu.makeDevicePlan({});
  FakeStep small(gpu, someTree(3), 4);
  ASSERT_TRUE(plan->write(gpu.makePlan(small.tree)).ok());
  ASSERT_TRUE(plan->upload(stream).ok());
  const auto graph = capture(gpu, stream, [&] { return plan->run(*gpu.kernels, small.pointers(), stream); });
  EXPECT_TRUE(plan->isFixed());

  const auto written = plan->write(gpu.makePlan(someTree(90)));
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().message,
            "the plan has 90 queries, there is room for " + std::to_string(plan->room().queries));
  // It changed nothing.
  ASSERT_EQ(gpu.device->api().graphLaunch(graph, stream), cu::kSuccess);
  EXPECT_TRUE(small.isRight());
}

TEST(CudaPlanTest, RoomGrowsUntilItIsCaptured) {
  const FakeGpu gpu;
  const cu::Stream stream = makeStream(gpu);
  const auto plan = gpu.makeDevicePlan({});
  int allocated = 0;
  for (int branches = 3; branches < 120; branches += 3) {
    FakeStep step(gpu, someTree(branches), 5);
    ASSERT_TRUE(plan->write(gpu.makePlan(step.tree)).ok());
    allocated += countCalls()["cuMemHostAlloc"] > 0;
    ASSERT_TRUE(plan->upload(stream).ok());
    ASSERT_TRUE(plan->run(*gpu.kernels, step.pointers(), stream).ok());
    ASSERT_TRUE(step.isRight()) << branches;
  }
  EXPECT_GE(allocated, 3);
  EXPECT_LE(allocated, 20);
  EXPECT_FALSE(plan->isFixed());
}

TEST(CudaPlanTest, AStalePlanIsRefused) {
  const FakeGpu gpu;
  const cu::Stream stream = makeStream(gpu);
  const auto plan = gpu.makeDevicePlan({.room = {}, .isWatched = true});
  FakeStep step(gpu, someTree(), 6);
  const auto generation = plan->watch()->treeGeneration();
  generation->store(step.tree.generation());
  EXPECT_EQ(plan->run(*gpu.kernels, step.pointers(), stream).error().message,
            "there is no plan on the device");
  ASSERT_TRUE(plan->write(gpu.makePlan(step.tree)).ok());
  EXPECT_THAT(plan->run(*gpu.kernels, step.pointers(), stream).error().message,
              HasSubstr("not been uploaded"));
  ASSERT_TRUE(plan->upload(stream).ok());
  ASSERT_TRUE(plan->run(*gpu.kernels, step.pointers(), stream).ok());

  ++*generation;
  (void)fake_cuda::takeCalls();
  const auto refused = plan->run(*gpu.kernels, step.pointers(), stream);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "the plan on the device is stale: it was made for generation " +
                                         std::to_string(*generation - 1) + " of the tree, which is now at " +
                                         std::to_string(*generation));
  EXPECT_TRUE(fake_cuda::takeCalls().empty());
}

TEST(CudaPlanTest, AReplayNoticesAStalePlanAndTellsItOnce) {
  const FakeGpu gpu;
  const cu::Stream stream = makeStream(gpu);
  const auto plan = gpu.makeDevicePlan({.room = {}, .isWatched = true});
  FakeStep step(gpu, someTree(), 7);
  const auto generation = plan->watch()->treeGeneration();
  generation->store(step.tree.generation());
  plan::Plan made = gpu.makePlan(step.tree);
  ASSERT_TRUE(plan->write(made).ok());
  ASSERT_TRUE(plan->upload(stream).ok());
  const auto graph = capture(gpu, stream, [&] { return plan->run(*gpu.kernels, step.pointers(), stream); });
  const auto replay = [&] { return gpu.device->api().graphLaunch(graph, stream) == cu::kSuccess; };
  ASSERT_TRUE(replay());
  EXPECT_TRUE(plan->checkReplays().ok());
  ++*generation;
  ASSERT_TRUE(replay());
  EXPECT_THAT(plan->checkReplays().error().message,
              HasSubstr("was at generation " + std::to_string(*generation)));
  EXPECT_TRUE(plan->checkReplays().ok());

  made.generation = *generation;
  ASSERT_TRUE(plan->write(made).ok());
  ASSERT_TRUE(plan->upload(stream).ok());
  ASSERT_TRUE(replay());
  EXPECT_TRUE(plan->checkReplays().ok());
}

TEST(CudaPlanTest, RunsThatWerePlannedAheadMayFindTheTreeChanged) {
  const FakeGpu gpu;
  const cu::Stream stream = makeStream(gpu);
  const auto plan = gpu.makeDevicePlan({.room = {}, .isWatched = true, .freeRuns = 2});
  FakeStep step(gpu, someTree(), 8);
  const auto generation = plan->watch()->treeGeneration();
  generation->store(step.tree.generation());
  plan::Plan made = gpu.makePlan(step.tree);
  ASSERT_TRUE(plan->write(made).ok());
  ASSERT_TRUE(plan->upload(stream).ok());
  const CudaPointers pointers = step.pointers();
  const auto graph = capture(gpu, stream, [&]() -> support::Result<void> { // two layers
    if (auto ran = plan->run(*gpu.kernels, pointers, stream); !ran)
      return ran;
    return plan->run(*gpu.kernels, pointers, stream);
  });
  for (int i = 0; i < 5; ++i) {
    made.generation = ++*generation; // while the replay before is under way
    ASSERT_TRUE(plan->write(made).ok());
    ASSERT_TRUE(plan->upload(stream).ok());
    ++*generation;
    ASSERT_EQ(gpu.device->api().graphLaunch(graph, stream), cu::kSuccess);
    EXPECT_TRUE(plan->checkReplays().ok());
  }
  ASSERT_EQ(gpu.device->api().graphLaunch(graph, stream), cu::kSuccess); // without an upload
  EXPECT_FALSE(plan->checkReplays().ok());
}

TEST(CudaPlanTest, PlansTakeTurnsAndWaitOnlyForTheLastButOne) {
  const FakeGpu gpu;
  const cu::Stream stream = makeStream(gpu);
  const auto plan = gpu.makeDevicePlan({});
  FakeStep step(gpu, someTree(), 9);
  const plan::Plan made = gpu.makePlan(step.tree);
  ASSERT_TRUE(plan->write(made).ok());
  ASSERT_TRUE(plan->upload(stream).ok());
  fake_cuda::setEventsDone(false); // copies stay under way
  (void)fake_cuda::takeCalls();
  ASSERT_TRUE(plan->write(made).ok());
  EXPECT_EQ(countCalls()["cuEventSynchronize"], 0);
  ASSERT_TRUE(plan->upload(stream).ok());
  ASSERT_TRUE(plan->write(made).ok());
  EXPECT_EQ(countCalls()["cuEventSynchronize"], 1);
  fake_cuda::setEventsDone(true);
}

TEST(CudaPlanTest, NothingIsUploadedIntoACapture) {
  const FakeGpu gpu;
  const cu::Stream stream = makeStream(gpu);
  const auto plan = gpu.makeDevicePlan({});
  ASSERT_TRUE(plan->write(gpu.makePlan(someTree())).ok());
  ASSERT_EQ(gpu.device->api().streamBeginCapture(stream, cu::kCaptureThreadLocal), cu::kSuccess);
  const auto uploaded = plan->upload(stream);
  ASSERT_FALSE(uploaded.ok());
  EXPECT_THAT(uploaded.error().message, HasSubstr("being captured"));
  cu::Graph graph = nullptr;
  ASSERT_EQ(gpu.device->api().streamEndCapture(stream, &graph), cu::kSuccess);
  EXPECT_TRUE(plan->upload(stream).ok());
}

TEST(CudaPlanTest, ErrorsOfTheDriverNameTheKernel) {
  const FakeGpu gpu;
  const cu::Stream stream = makeStream(gpu);
  const auto plan = gpu.makeDevicePlan({});
  FakeStep step(gpu, someTree(), 10);
  ASSERT_TRUE(plan->write(gpu.makePlan(step.tree)).ok());
  ASSERT_TRUE(plan->upload(stream).ok());
  fake_cuda::failAt("cuLaunchKernel", cu::kOutOfMemory);
  const auto ran = plan->run(*gpu.kernels, step.pointers(), stream);
  fake_cuda::failAt("cuLaunchKernel", 0);
  ASSERT_FALSE(ran.ok());
  EXPECT_EQ(ran.error().message,
            "cannot launch kernel `deft_small_narrow`: out of memory (CUDA_ERROR_OUT_OF_MEMORY)");
}

TEST(CudaPlanTest, UnalignedPointersAndOtherKernelsAreRefused) {
  const FakeGpu gpu, other(1);
  const cu::Stream stream = makeStream(gpu);
  const auto plan = gpu.makeDevicePlan({});
  FakeStep step(gpu, someTree(), 11);
  ASSERT_TRUE(plan->write(gpu.makePlan(step.tree)).ok());
  ASSERT_TRUE(plan->upload(stream).ok());
  CudaPointers pointers = step.pointers();
  pointers.k = static_cast<const char *>(pointers.k) + 2;
  EXPECT_EQ(plan->run(*gpu.kernels, pointers, stream).error().message,
            "k does not begin at a multiple of 16 bytes");
  EXPECT_THAT(plan->run(*other.kernels, step.pointers(), stream).error().message,
              HasSubstr("another device"));
}

TEST(CudaPlanTest, ThreadsAndDevicesGoTheirOwnWays) {
  const FakeGpu first, second(1);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      const FakeGpu &gpu = i % 2 ? second : first;
      const cu::Stream stream = makeStream(gpu);
      const auto plan = gpu.makeDevicePlan({});
      for (int round = 0; round < 10; ++round) {
        FakeStep step(gpu, someTree(3 + round + i), static_cast<std::uint64_t>(100 * i + round));
        ASSERT_TRUE(plan->write(gpu.makePlan(step.tree)).ok());
        ASSERT_TRUE(plan->upload(stream).ok());
        ASSERT_TRUE(plan->run(*gpu.kernels, step.pointers(), stream).ok());
        EXPECT_TRUE(step.isRight());
      }
      cu::Context current = nullptr; // this thread had none, and has none
      EXPECT_EQ(gpu.device->api().ctxGetCurrent(&current), cu::kSuccess);
      EXPECT_EQ(current, nullptr);
    });
  for (std::thread &thread : threads)
    thread.join();
  std::map<const void *, int> launches;
  for (const fake_cuda::Call &call : fake_cuda::takeCalls())
    if (call.name == "cuLaunchKernel")
      ++launches[call.context];
  EXPECT_EQ(launches.size(), 2u); // in the context of their own device
}

TEST(CudaPlanTest, MemoryIsGivenBack) {
  const FakeGpu gpu;
  const std::size_t before = fake_cuda::allocatedBytes();
  {
    const cu::Stream stream = makeStream(gpu);
    const auto plan = gpu.makeDevicePlan({.room = {}, .isWatched = true});
    ASSERT_TRUE(plan->write(gpu.makePlan(someTree())).ok());
    ASSERT_TRUE(plan->upload(stream).ok());
    EXPECT_GT(fake_cuda::allocatedBytes(), before);
  }
  EXPECT_EQ(fake_cuda::allocatedBytes(), before);
}

// Freeing memory of the device waits for it; what runs under way write of the host's may only go behind that.
TEST(CudaPlanTest, WhatRunsWriteOfTheHostsMemoryIsGivenBackBehindTheDevices) {
  const FakeGpu gpu;
  auto plan = gpu.makeDevicePlan({.room = {}, .isWatched = true});
  ASSERT_TRUE(plan->write(gpu.makePlan(someTree())).ok());
  ASSERT_TRUE(plan->upload(makeStream(gpu)).ok());
  (void)fake_cuda::takeCalls();
  plan.reset();
  const auto calls = fake_cuda::takeCalls();
  const auto firstOf = [&](const char *name) {
    return std::find_if(calls.begin(), calls.end(),
                        [&](const fake_cuda::Call &call) { return call.name == name; });
  };
  ASSERT_NE(firstOf("cuMemFreeHost"), calls.end());
  EXPECT_LT(firstOf("cuMemFree"), firstOf("cuMemFreeHost"));
}

} // namespace
} // namespace deft::exec
