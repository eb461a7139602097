// Runs that select, and sparse ones, on the GPU of the tests' driver, as a program sees them.
#include "templates/deft/abi.h"
#include "tests/unit/runtime/api/GpuFixture.h"

#include <gmock/gmock.h>

#include <algorithm>

namespace deft {
namespace {

using testing::Each;
using testing::HasSubstr;

class GpuSelectionTest : public GpuTest {
protected:
  GpuSelectionTest() {
    attention_ = GpuAttention::load(gpu_, loadPackage(DEFT_TEST_SELECTING_PACKAGE).value()).value();
  }
  GpuPlan planWith(int budget) {
    GpuPlan plan = GpuPlan::make(attention_, tree(), {.budget = budget}).value();
    table_.upload(sequences_, stream_).value();
    plan.upload(stream_).value();
    return plan;
  }
  std::string errorOf(const Result<void> &result) { return result ? "" : result.error().message; }
};

TEST_F(GpuSelectionTest, ABudgetBeyondThePathsMakesSparseRunsFullOnes) {
  GpuPlan plan = planWith(4096);
  ASSERT_TRUE(plan.runSelecting(attention_, inputs(), outputs(), stream_));
  EXPECT_TRUE(isRight());
  ASSERT_TRUE(plan.runSparse(attention_, inputs(), outputs(), stream_));
  EXPECT_TRUE(isRight());
}

TEST_F(GpuSelectionTest, AnInvariantPlanCutsListsByTheBudgetAlone) {
  attention_ =
      GpuAttention::load(gpu_, loadPackage(DEFT_TEST_SELECTING_PACKAGE).value(), {.invariant = true}).value();
  GpuPlan plan = GpuPlan::make(attention_, tree(), {.plan = {.invariant = true}, .budget = 4096}).value();
  table_.upload(sequences_, stream_).value();
  plan.upload(stream_).value();
  ASSERT_TRUE(plan.runSelecting(attention_, inputs(), outputs(), stream_));
  (void)fake_cuda::takeCalls();
  ASSERT_TRUE(plan.runSparse(attention_, inputs(), outputs(), stream_));
  EXPECT_TRUE(isRight());
  const auto calls = fake_cuda::takeCalls();
  const auto sparse = std::find_if(calls.begin(), calls.end(), [](const fake_cuda::Call &call) {
    return call.kernel.ends_with("_sparse");
  });
  ASSERT_NE(sparse, calls.end());
  EXPECT_EQ(sparse->argsAs<abi::AttendArgs>().itemCount, 5 * 4096 / 512);
}

TEST_F(GpuSelectionTest, ListsAreReadToTheHost) {
  GpuPlan plan = planWith(24);
  Selection selection = Selection::make(attention_.attention(), 24).value();
  EXPECT_THAT(errorOf(plan.readLists(selection, stream_)), HasSubstr("no run has selected yet"));
  ASSERT_TRUE(plan.runSelecting(attention_, inputs(), outputs(), stream_));
  ASSERT_TRUE(plan.readLists(selection, stream_));
  EXPECT_EQ(selection.queryCount(), 5);
  EXPECT_THAT(selection.counts(), Each(24));
  for (int query = 0; query < 5; ++query)
    for (int list = 0; list < kKvHeads; ++list) {
      const auto positions = selection.positions(query, list);
      EXPECT_TRUE(std::is_sorted(positions.begin(), positions.end()));
      const int length = 70 + 3 + 7 * query;
      EXPECT_EQ(positions.front(), 0); // keep_first = 1
      EXPECT_EQ(positions.back(), length - 1);
      EXPECT_EQ(positions[22], length - 2); // keep_last = 2
    }
  Selection other = Selection::make(attention_.attention(), 4096).value();
  EXPECT_EQ(errorOf(plan.readLists(other, stream_)),
            "the selection has 2 lists a query of 4096 tokens, the plan 2 of 24");
}

TEST_F(GpuSelectionTest, AfterAChangeOfTheTreeTheNextRunSelectsAnew) {
  GpuPlan plan = planWith(24);
  ASSERT_TRUE(plan.runSelecting(attention_, inputs(), outputs(), stream_));
  ASSERT_TRUE(plan.runSparse(attention_, inputs(), outputs(), stream_));
  (void)sequences_.append(leaves_[0], 1).value();
  EXPECT_THAT(errorOf(plan.runSparse(attention_, inputs(), outputs(), stream_)), HasSubstr("stale"));
  plan.advance(tree()).value();
  plan.upload(stream_).value();
  EXPECT_THAT(errorOf(plan.runSparse(attention_, inputs(), outputs(), stream_)),
              HasSubstr("no run has selected since it was uploaded"));
  ASSERT_TRUE(plan.runSelecting(attention_, inputs(), outputs(), stream_));
  EXPECT_TRUE(plan.runSparse(attention_, inputs(), outputs(), stream_));
}

TEST_F(GpuSelectionTest, AGraphOfAllLayersServesEveryStepThatItHasRoomFor) {
  GpuPlanOptions options;
  options.budget = 4096;
  options.longestPath = 200;
  GpuPlan plan = GpuPlan::make(attention_, tree(), options).value();
  const GpuRoomSize room = roomFor(attention_, 8, 8, 1000, options).value();
  EXPECT_EQ(room.room.positions, 200);
  plan.reserve(room.room).value();
  table_.upload(sequences_, stream_).value();
  plan.upload(stream_).value();
  void *graph = nullptr, *executable = nullptr;
  ASSERT_EQ(cuStreamBeginCapture_v2(stream_, 1), 0);
  const auto selecting = plan.runSelecting(attention_, inputs(), outputs(), stream_);
  const auto sparse = plan.runSparse(attention_, inputs(), outputs(), stream_);
  ASSERT_EQ(cuStreamEndCapture(stream_, &graph), 0);
  ASSERT_TRUE(selecting) << selecting.error().text();
  ASSERT_TRUE(sparse) << sparse.error().text();
  ASSERT_EQ(cuGraphInstantiateWithFlags(&executable, graph, 0), 0);
  for (int step = 0; step < 3; ++step) {
    ASSERT_EQ(cuGraphLaunch(executable, stream_), 0);
    EXPECT_TRUE(isRight()) << step; // of the sparse run, with all tokens on its lists
    ASSERT_TRUE(plan.checkReplays());
    for (const int leaf : leaves_)
      (void)sequences_.append(leaf, 1).value();
    plan.advance(tree()).value();
    table_.upload(sequences_, stream_).value();
    plan.upload(stream_).value();
  }
}

TEST_F(GpuSelectionTest, RoomCountsTheMemoryOfSelection) {
  GpuPlanOptions options;
  const auto bytes = [&] { return roomFor(attention_, 8, 8, 100'000, options).value().deviceBytes; };
  const std::uint64_t without = bytes();
  options.budget = 4096;
  options.longestPath = 1000;
  const std::uint64_t with = bytes();
  constexpr std::uint64_t kWorth = 8 * 2 * 1000 * 4, kLists = 8 * 2 * 4096 * 8;
  EXPECT_GE(with - without, kWorth + kLists);
  options.longestPath = 0; // a path may have all tokens
  EXPECT_GE(bytes() - with, (100'000 - 1000) * 8 * 2 * 4);
}

TEST_F(GpuSelectionTest, WhatIsNotServedIsRefused) {
  const auto refused = GpuPlan::make(attention_, tree(), {.budget = 25});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "a budget of 25 is none of `host_selecting`'s: 24, 4096");
  const auto growing = GpuPlan::make(attention_, tree(), {.followsLengths = true, .budget = 24});
  ASSERT_FALSE(growing);
  EXPECT_EQ(growing.error().message, "a plan that selects does not follow lengths on the device");
  GpuPlan without = GpuPlan::make(attention_, tree()).value();
  table_.upload(sequences_, stream_).value();
  without.upload(stream_).value();
  EXPECT_EQ(errorOf(without.runSelecting(attention_, inputs(), outputs(), stream_)),
            "the plan was made without a budget, for runs that do not select");
  const GpuAttention plain = GpuAttention::load(gpu_, loadPackage(DEFT_TEST_GPU_PACKAGE).value()).value();
  const auto none = GpuPlan::make(plain, tree(), {.budget = 24});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "`host_program` selects nothing");
}

TEST_F(GpuSelectionTest, ListsLieByThePageTableThatSelected) {
  GpuPlan plan = planWith(24);
  ASSERT_TRUE(plan.runSelecting(attention_, inputs(), outputs(), stream_));
  std::vector<int> other(4 * kPages);
  GpuInputs elsewhere = inputs();
  elsewhere.pageTable = other.data();
  EXPECT_EQ(errorOf(plan.runSparse(attention_, elsewhere, outputs(), stream_)),
            "the run has another page table than the selecting run");
}

} // namespace
} // namespace deft
