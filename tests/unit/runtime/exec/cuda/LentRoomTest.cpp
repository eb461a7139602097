#include "tests/unit/runtime/exec/cuda/FakeGpu.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <span>

namespace deft::exec {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::Ne;

tree::KvTree someTree() { return test::levelTree({1, 3, 9}, {100, 40, 20}); }

/// A tree whose plans are mixed, so that runs are written anew, where room for them is lent if it may be.
struct LentRoom {
  void make() {
    device->lendRoom(plan.runs);
    ASSERT_TRUE(planner.make(step.tree, plan::VariantFacts::of(gpu.variant), gpu.kernels->config(), 8, plan));
  }
  void upload() {
    ASSERT_TRUE(device->write(plan).ok());
    ASSERT_TRUE(device->upload(stream).ok());
  }
  /// The plan that is uploaded is one that had room, which the first one has not.
  void fillRoom() {
    for (int i = 0; i < 2; ++i) {
      make();
      upload();
    }
  }
  bool isRight() {
    EXPECT_TRUE(device->run(*gpu.kernels, step.pointers(), stream).ok());
    return step.isRight();
  }
  bool hasRunsOf(const plan::Plan &like) const {
    return std::ranges::equal(plan.runs, like.runs, [](const abi::Run &a, const abi::Run &b) {
      return std::memcmp(&a, &b, sizeof(abi::Run)) == 0;
    });
  }

  const FakeGpu gpu{0, 1, true};
  const cu::Stream stream = makeStream(gpu);
  const std::unique_ptr<CudaPlan> device = gpu.makeDevicePlan({});
  FakeStep step{gpu, someTree(), 7};
  plan::Planner planner;
  plan::Plan plan;
};

TEST(LentRoomTest, RunsStandWhereTheyAreCopiedFrom) {
  LentRoom lent;
  lent.make(); // there is no room yet
  lent.upload();
  const abi::Run *const own = lent.plan.runs.data();
  std::vector<const abi::Run *> places;
  for (int i = 0; i < 4; ++i) {
    lent.make();
    lent.upload();
    EXPECT_TRUE(lent.isRight());
    EXPECT_NE(lent.plan.runs.data(), own);
    EXPECT_TRUE(lent.hasRunsOf(lent.gpu.makePlan(lent.step.tree)));
    places.push_back(lent.plan.runs.data());
  }
  EXPECT_THAT(places, Each(places[0])); // each has been copied when the next one comes
}

TEST(LentRoomTest, RunsStandInTheOtherRoomWhileTheyAreCopied) {
  LentRoom lent;
  lent.fillRoom();
  const abi::Run *const first = lent.plan.runs.data();
  lent.plan = plan::Plan(lent.plan); // stands in neither
  lent.make();
  lent.upload();
  const abi::Run *const second = lent.plan.runs.data();
  EXPECT_NE(second, first);
  plan::Plan stranger = lent.plan;
  lent.device->lendRoom(stranger.runs); // asks whether the first one is free
  fake_cuda::setEventsDone(false);
  lent.make();
  fake_cuda::setEventsDone(true);
  EXPECT_EQ(lent.plan.runs.data(), first);
  lent.upload();
  EXPECT_TRUE(lent.isRight());
}

TEST(LentRoomTest, APlanThatHasBeenCopiedAdvancesWhereItIs) {
  LentRoom lent;
  lent.fillRoom();
  const abi::Run *const uploaded = lent.plan.runs.data();
  const int leaf = lent.step.tree.queries().back().node;
  lent.plan.leaves.back().canGrow = 1; // what is mixed may not, here nobody computes
  ASSERT_TRUE(lent.step.tree.append(leaf, 1).ok());
  lent.device->lendRoom(lent.plan.runs);
  ASSERT_EQ(plan::advance(lent.step.tree, lent.plan), plan::Advance::Done);
  EXPECT_EQ(lent.plan.runs.data(), uploaded);
}

TEST(LentRoomTest, APlanThatAdvancesLeavesWhatIsCopiedAsItIs) {
  LentRoom lent;
  lent.fillRoom();
  const plan::Plan before = lent.plan;
  const std::span uploaded(lent.plan.runs.data(), lent.plan.runs.size());
  const int leaf = lent.step.tree.queries().back().node;
  lent.plan.leaves.back().canGrow = 1; // what is mixed may not, here nobody computes
  ASSERT_TRUE(lent.step.tree.append(leaf, 1).ok());
  fake_cuda::setEventsDone(false);
  lent.device->lendRoom(lent.plan.runs);
  fake_cuda::setEventsDone(true);
  ASSERT_EQ(plan::advance(lent.step.tree, lent.plan), plan::Advance::Done);
  EXPECT_NE(lent.plan.runs.data(), uploaded.data());
  EXPECT_EQ(std::memcmp(uploaded.data(), before.runs.data(), uploaded.size_bytes()), 0);
}

TEST(LentRoomTest, WhatWaitsForItsUploadIsNotLent) {
  LentRoom lent;
  lent.fillRoom();
  const abi::Run *const copied = lent.plan.runs.data();
  lent.make();
  ASSERT_TRUE(lent.device->write(lent.plan).ok());
  const abi::Run *const waiting = lent.plan.runs.data();
  const plan::Plan first = lent.plan;
  lent.make();
  EXPECT_THAT(lent.plan.runs.data(), AllOf(Ne(waiting), Ne(copied)));
  EXPECT_EQ(std::memcmp(waiting, first.runs.data(), first.runs.size() * sizeof(abi::Run)), 0);
  ASSERT_TRUE(lent.device->upload(lent.stream).ok()); // the one that waited
  EXPECT_TRUE(lent.isRight());
  fake_cuda::setEventsDone(false);
  lent.make(); // its copy and the one before may be under way
  fake_cuda::setEventsDone(true);
  EXPECT_THAT(lent.plan.runs.data(), AllOf(Ne(waiting), Ne(copied)));
}

TEST(LentRoomTest, ACopyThatWasMadeSaysNothingOfTheNextOne) {
  LentRoom lent;
  // Both rooms are lent, which asks whether they are free, and copied since.
  for (int i = 0; i < 6; ++i) {
    lent.plan = plan::Plan(lent.plan); // stands in neither
    lent.make();
    lent.upload();
  }
  const std::span<const abi::Run> underWay(lent.plan.runs.data(), lent.plan.runs.size());
  const plan::Plan copied = lent.plan;
  fake_cuda::setEventsDone(false);
  for (int i = 0; i < 2; ++i) {
    lent.make();
    EXPECT_NE(lent.plan.runs.data(), underWay.data());
    EXPECT_EQ(std::memcmp(underWay.data(), copied.runs.data(), underWay.size_bytes()), 0);
    lent.upload();
  }
  fake_cuda::setEventsDone(true);
  EXPECT_TRUE(lent.isRight());
}

TEST(LentRoomTest, RunsOutliveTheRoomInWhichTheyStand) {
  LentRoom lent;
  lent.fillRoom();
  const plan::Plan before = lent.plan;
  PlanRoom room = lent.device->room();
  room.queries = room.queries / 2 + 1; // all behind it moves, and it needs no more than there was
  ASSERT_TRUE(lent.device->setRoom(room).ok());
  EXPECT_TRUE(lent.hasRunsOf(before));
  lent.upload();
  EXPECT_TRUE(lent.isRight());
  EXPECT_TRUE(lent.hasRunsOf(before));
}

} // namespace
} // namespace deft::exec
