// Captured steps of programs on GPUs. `libcuda.so.1` is the tests' driver.
#include "runtime/capture/StepFile.h"
#include "runtime/capture/StepTree.h"
#include "tests/unit/runtime/api/GpuFixture.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gmock/gmock.h>

#include <algorithm>

namespace deft {
namespace {

using ::testing::HasSubstr;

class GpuCaptureTest : public GpuTest {
protected:
  ~GpuCaptureTest() override { stopCapture(); }

  void start(CaptureWhat what) { startCapture({.folder = folder_.path(), .what = what}).value(); }
  std::vector<capture::Step> steps() const {
    std::vector<capture::Step> read;
    for (const std::string &name : module_cache::namesIn(folder_.path()))
      if (name.ends_with(".json")) {
        auto step = capture::readStep(folder_.path(name));
        EXPECT_TRUE(step) << (step ? "" : step.error().message);
        if (step)
          read.push_back(std::move(*step));
      }
    return read;
  }
  static int waits() {
    const auto calls = fake_cuda::takeCalls();
    return static_cast<int>(std::count_if(calls.begin(), calls.end(), [](const fake_cuda::Call &call) {
      return call.name == "cuStreamSynchronize" || call.name == "cuEventSynchronize";
    }));
  }

  module_cache::TestFolder folder_;
};

TEST_F(GpuCaptureTest, ByDefaultNothingWaits) {
  start(CaptureWhat::Host);
  auto plan = GpuPlan::make(attention_, tree()).value();
  table_.upload(sequences_, stream_).value();
  plan.upload(stream_).value();
  (void)fake_cuda::takeCalls();
  plan.run(attention_, inputs(), outputs(), stream_).value();
  EXPECT_EQ(waits(), 0);
  const auto written = steps();
  ASSERT_EQ(written.size(), 1u);
  EXPECT_EQ(written[0].device.name, "Fake Hopper");
  EXPECT_EQ(written[0].moment, capture::Moment::Run);
  EXPECT_FALSE(written[0].readDevice);
  EXPECT_FALSE(written[0].pageTable || written[0].runUs);
  EXPECT_EQ(written[0].run->cache.k.tokenStride, kKvHeads * kHeadDim);
  EXPECT_EQ(written[0].tree.queries().size(), 5u);
}

TEST_F(GpuCaptureTest, WhatTheDeviceHasIsReadWhereThatIsAskedFor) {
  start(CaptureWhat::Tensors);
  auto plan = GpuPlan::make(attention_, tree()).value();
  uploadAndRun(plan).value();
  ASSERT_TRUE(isRight());
  const auto written = steps();
  ASSERT_EQ(written.size(), 1u);
  const capture::Step &step = written[0];
  ASSERT_TRUE(step.readDevice && step.pageTable && step.runUs);
  tree::KvTree tree = step.tree;
  EXPECT_EQ(capture::placeStep(step, tree)->pagesAdded, 0);
  EXPECT_THAT(module_cache::readText(folder_.path(step.tensors + "/q.npy")),
              HasSubstr("'shape': (5, 4, 64)"));
}

TEST_F(GpuCaptureTest, StepsOfAGraphAreWrittenWithTheirUpload) {
  start(CaptureWhat::Host);
  auto plan = GpuPlan::make(attention_, tree()).value();
  plan.reserve({.queries = kMostQueries, .items = 200, .runs = 400, .partials = 400}).value();
  table_.upload(sequences_, stream_).value();
  plan.upload(stream_).value();
  void *executable = nullptr;
  ASSERT_NO_FATAL_FAILURE(capture(plan, executable));
  EXPECT_TRUE(steps().empty()); // nothing has run yet
  for (int step = 0; step < 2; ++step) {
    for (const int leaf : leaves_)
      (void)sequences_.append(leaf).value();
    plan.advance(tree()).value();
    table_.upload(sequences_, stream_).value();
    plan.upload(stream_).value();
    ASSERT_EQ(cuGraphLaunch(executable, stream_), 0);
  }
  const auto written = steps();
  ASSERT_EQ(written.size(), 2u);
  EXPECT_EQ(written[1].moment, capture::Moment::Upload);
  EXPECT_TRUE(written[1].run->isInGraph);
  EXPECT_FALSE(written[1].readDevice);
  EXPECT_EQ(written[1].tree.nodes()[1].tokens, 5);
}

TEST_F(GpuCaptureTest, ACallBetweenReplaysReadsLengthsThatOnlyTheDeviceHas) {
  start(CaptureWhat::Host);
  auto made = GpuPlan::make(attention_, tree(), {.followsLengths = true});
  if (!made && made.error().code == ErrorCode::Environment)
    GTEST_SKIP() << made.error().message;
  GpuPlan &plan = *made;
  EXPECT_EQ(plan.captureReplay(stream_).error().message,
            "no graph has captured a run of the plan since steps are captured");
  plan.reserve({.queries = kMostQueries, .items = 200, .runs = 400, .partials = 400}).value();
  table_.upload(sequences_, stream_).value();
  plan.upload(stream_).value();
  std::vector<int> lengths;
  for (int query = 0; query < tree().queryCount(); ++query)
    lengths.push_back(70 + tree().node(tree().query(query).node).tokens);
  void *graph = nullptr, *executable = nullptr;
  ASSERT_EQ(cuStreamBeginCapture_v2(stream_, 1), 0);
  ASSERT_TRUE(plan.follow(lengths.data(), stream_));
  ASSERT_TRUE(plan.run(attention_, inputs(), outputs(), stream_));
  EXPECT_THAT(plan.captureReplay(stream_).error().message, HasSubstr("which is being captured into a graph"));
  ASSERT_EQ(cuStreamEndCapture(stream_, &graph), 0);
  ASSERT_EQ(cuGraphInstantiateWithFlags(&executable, graph, 0), 0);
  ++lengths[1];
  ASSERT_EQ(cuGraphLaunch(executable, stream_), 0);
  plan.captureReplay(stream_).value();
  const auto written = steps();
  ASSERT_EQ(written.size(), 1u);
  EXPECT_EQ(written[0].moment, capture::Moment::Call);
  EXPECT_TRUE(written[0].readDevice);
  EXPECT_EQ(written[0].lengths, lengths);
  const auto real = capture::treeOf(written[0]);
  ASSERT_TRUE(real) << real.error().message;
  EXPECT_EQ(real->pathTokens(real->queries()[1]), lengths[1]);
  stopCapture();
  EXPECT_EQ(plan.captureReplay(stream_).error().message, "no steps are captured");
}

TEST_F(GpuCaptureTest, ADeviceThatCannotBeReadEndsItAndNoRun) {
  start(CaptureWhat::Device);
  auto plan = GpuPlan::make(attention_, tree()).value();
  table_.upload(sequences_, stream_).value();
  plan.upload(stream_).value();
  fake_cuda::failAt("cuMemcpyDtoHAsync", 700);
  const auto ran = plan.run(attention_, inputs(), outputs(), stream_);
  fake_cuda::failAt("cuMemcpyDtoHAsync", 0);
  EXPECT_TRUE(ran) << ran.error().text();
  EXPECT_THAT(captureState().ended, HasSubstr("cannot copy what a step reads"));
}

} // namespace
} // namespace deft
