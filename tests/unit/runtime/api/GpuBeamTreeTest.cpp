// Beams on GPUs. `libcuda.so.1` is the tests' driver, whose memory is the host's.
#include "tests/support/DriverCalls.h"
#include "tests/support/FakeCuda.h"
#include "tests/unit/runtime/api/PlainBeams.h"

#include <gtest/gtest.h>

#include <cmath>

namespace deft {
namespace {

constexpr int kPage = 16, kHistory = 20, kBeams = 4400, kPages = 1800; // as many as fill the GPU

class GpuBeamTreeTest : public testing::Test {
protected:
  GpuBeamTreeTest() {
    fake_cuda::setVariant(
        {PlainBeams::kQueryHeads, PlainBeams::kKvHeads, PlainBeams::kHeadDim, kPage, true, 0.25f});
    EXPECT_EQ(cuStreamCreate(&stream_, 1), 0);
    beams_.start(kHistory, kPages).value();
    table_.assign(beams_.pageTable().begin(), beams_.pageTable().end());
    q_ = PlainBeams::drawn(random_, kBeams * PlainBeams::kRowOfQ);
    parents_.assign(kBeams, 0);
  }

  /// After the beams have taken the step.
  void follow() {
    plain_.advance(random_, parents_, beams_.step().slots);
    for (int &parent : parents_)
      parent = static_cast<int>(random_() % kBeams);
  }
  GpuInputs inputs() {
    return {.q = q_.data(), .k = plain_.k.data(), .v = plain_.v.data(), .pageTable = table_.data()};
  }
  GpuOutputs outputs() { return {.out = out_.data(), .lse = lse_.data()}; }
  void expectRight() {
    EXPECT_EQ(plain_.firstWrong(q_, out_, lse_), -1);
    std::fill(lse_.begin(), lse_.end(), NAN);
  }

  std::mt19937 random_{7};
  PlainBeams plain_{random_, kHistory, (kPages + 5) * kPage};
  BeamTree beams_ = BeamTree::make({.pageSize = kPage}).value();
  std::vector<int> parents_, table_;
  std::vector<std::uint16_t> q_, out_ = std::vector<std::uint16_t>(kBeams * PlainBeams::kRowOfQ);
  std::vector<float> lse_ = std::vector<float>(kBeams * PlainBeams::kQueryHeads);
  Gpu gpu_ = Gpu::open(0).value();
  GpuAttention attention_ = GpuAttention::load(gpu_, loadPackage(DEFT_TEST_GPU_PACKAGE).value()).value();
  void *stream_ = nullptr;
};

TEST_F(GpuBeamTreeTest, OneCallIsAStepOfTheHost) {
  beams_.advance(parents_).value();
  follow();
  GpuPlan plan = GpuPlan::make(attention_, beams_.tree()).value();
  GpuPlan *plans[] = {&plan};
  for (int step = 0; step < 3; ++step) {
    ASSERT_EQ(beams_.advance(parents_, {.gpuPlans = plans, .stream = stream_}).value(), Advanced::Remade);
    follow();
    ASSERT_TRUE(plan.isCurrent());
    plan.run(attention_, inputs(), outputs(), stream_).value();
    expectRight();
    EXPECT_EQ(plan.summary().partials, 0); // each beam's path is one item's
  }
}

TEST_F(GpuBeamTreeTest, AGraphServesStepsThatFollow) {
  beams_.advance(parents_).value();
  follow();
  GpuPlan plan = GpuPlan::make(attention_, beams_.tree()).value();
  plan.reserve({.queries = kBeams, .items = 400, .runs = 12 * kBeams, .partials = 4000}).value();
  plan.upload(stream_).value();
  void *graph = nullptr, *executable = nullptr;
  ASSERT_EQ(cuStreamBeginCapture_v2(stream_, 1), 0);
  const auto captured = plan.run(attention_, inputs(), outputs(), stream_);
  ASSERT_EQ(cuStreamEndCapture(stream_, &graph), 0);
  ASSERT_TRUE(captured) << captured.error().text();
  ASSERT_EQ(cuGraphInstantiateWithFlags(&executable, graph, 0), 0);
  GpuPlan *plans[] = {&plan};
  for (int step = 0; step < 3; ++step) {
    ASSERT_TRUE(beams_.advance(parents_, {.gpuPlans = plans, .stream = stream_}));
    follow();
    ASSERT_EQ(cuGraphLaunch(executable, stream_), 0);
    EXPECT_TRUE(plan.checkReplays());
    expectRight();
  }
  // A replay between a step and its upload is noticed.
  ASSERT_TRUE(beams_.advance(parents_));
  ASSERT_EQ(cuGraphLaunch(executable, stream_), 0);
  EXPECT_FALSE(plan.checkReplays());
}

TEST_F(GpuBeamTreeTest, PlansThatFollowLengthsAreRefused) {
  beams_.advance(parents_).value();
  const Error refused = GpuPlan::make(attention_, beams_.tree(), {.followsLengths = true}).error();
  EXPECT_EQ(refused.code, ErrorCode::Usage);
  EXPECT_EQ(refused.field, "GpuPlanOptions::followsLengths");
}

} // namespace
} // namespace deft
