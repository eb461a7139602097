#include "runtime/exec/cuda/PlanDrafts.h"

#include "runtime/plan/PlaceDrafts.h"
#include "runtime/plan/Planner.h"
#include "tests/support/DraftTrees.h"
#include "tests/unit/runtime/exec/cuda/CompilesEverywhere.h"
#include "tests/unit/runtime/exec/cuda/FakeGpu.h"

#include <gmock/gmock.h>

#include <cstring>
#include <random>

namespace deft::exec {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

/// A request of 42 tokens with drafts, and the plan of its stand-ins.
struct Drafted {
  tree::KvTree tree;
  std::vector<tree::DraftedRequest> requests;
  plan::Plan plan;
  plan::DraftTables tables;

  Drafted(const FakeGpu &gpu, int drafts) {
    const int context = *tree.addNode(-1, 42, 0);
    for (int block = 0; block < tree::DraftStandIn::blocks(drafts); ++block) {
      const auto standIn = tree::DraftStandIn::of(drafts, block);
      const int node = *tree.addNode(context, standIn.tokens(), 42);
      for (int i = 0; i < standIn.count; ++i)
        (void)tree.addQuery(node);
    }
    requests = {{0, 0, drafts, 42, 42}};
    plan = gpu.makePlan(tree);
    tables = *plan::makeRoomForDrafts(requests, plan);
    tables.requests[0].mostGain = 8;
  }
};

/// A mask and lengths in the "device's" memory.
struct Mask {
  std::vector<std::uint32_t> bits;
  std::vector<int> lengths;
  int rows;

  Mask(const test::DraftParents &tree, int length)
      : lengths{length}, rows(static_cast<int>(tree.size()) + 3) {
    std::mt19937 random(1);
    bits = test::maskOf(tree, rows, random);
  }
  DraftInput input() const { return {bits.data(), nullptr, lengths.data(), rows}; }
};

// Sections of more room than there is need, for a device whose items have room before them, too.
TEST(PlanDraftsTest, WhatIsWrittenForADeviceIsWhatTheHostHas) {
  const FakeGpu gpu;
  Drafted drafted(gpu, 60);
  PlanRoom room = PlanRoom::of(drafted.plan, drafted.tables);
  room.queries += 5, room.draftRequests += 2, room.draftItems += 3, room.draftParts += 4;
  for (int &items : room.items)
    items += 6;
  const PlanSections sections = PlanSections::of(room);
  std::vector<std::byte> memory(sections.end, std::byte{0x55});
  FilledCounts filled = FilledCounts::all(room);
  writeSections(drafted.plan, room, sections, memory.data(), filled);
  writeDrafts(drafted.plan, drafted.tables, room, sections, memory.data());
  const auto at = [&]<typename T>(std::size_t section, T *) {
    return reinterpret_cast<T *>(memory.data() + section);
  };
  std::mt19937 random(2);
  const Mask mask(test::eagleTree(random), 45);
  unsigned long long unserved = 0, noTree = 0;
  abi::DraftArgs args{};
  args.requests = at(sections.draftRequests, static_cast<abi::DraftRequest *>(nullptr));
  args.draftItems = at(sections.draftItems, static_cast<abi::DraftItem *>(nullptr));
  args.parts = at(sections.draftParts, static_cast<abi::DraftPart *>(nullptr));
  args.queryAt = at(sections.queryAt, static_cast<int *>(nullptr));
  args.items = at(sections.items, static_cast<abi::Item *>(nullptr));
  args.runs = at(sections.runs, static_cast<abi::Run *>(nullptr));
  args.callerIndex = at(sections.callerIndex, static_cast<int *>(nullptr));
  args.queryPos = at(sections.queryPos, static_cast<int *>(nullptr));
  args.mostRequests = room.draftRequests;
  args.mostItems = room.draftItems;
  abi::DraftArgs own = plan::draftArgs(drafted.tables, drafted.plan);
  for (abi::DraftArgs *each : {&args, &own}) {
    each->bits = mask.bits.data();
    each->lengths = mask.lengths.data();
    each->rows = mask.rows;
    each->unserved = &unserved;
    each->noTree = &noTree;
    plan::placeDrafts(*each);
  }
  EXPECT_EQ(unserved, 0u);
  EXPECT_EQ(noTree, 0u);
  EXPECT_EQ(std::memcmp(args.runs, own.runs, drafted.plan.runs.size() * sizeof(abi::Run)), 0);
  EXPECT_EQ(std::memcmp(args.callerIndex, own.callerIndex, 60 * sizeof(int)), 0);
  EXPECT_EQ(std::memcmp(args.queryPos, own.queryPos, 60 * sizeof(int)), 0);
  for (std::size_t i = 0; i < drafted.plan.items.size(); ++i)
    EXPECT_EQ(std::memcmp(args.items + itemOnDevice(drafted.plan, sections, static_cast<int>(i)),
                          &drafted.plan.items[i], sizeof(abi::Item)),
              0);
}

TEST(PlanDraftsTest, TheKernelCompilesForEveryTargetWithoutSpills) {
  expectCompilesEverywhere("deft_draft_plan.cu", PlanDrafts::source());
}

// The tests' driver does what the kernel does, which runs as it is in tests/unit/templates.
TEST(PlanDraftsTest, APlanOnTheDeviceGetsItsDraftsThroughTheDriver) {
  const FakeGpu gpu;
  const Drafted drafted(gpu, 60);
  const auto device = gpu.makeDevicePlan({});
  std::mt19937 random(2);
  Mask mask(test::eagleTree(random), 42);
  const auto early = device->draft(mask.input(), nullptr);
  ASSERT_FALSE(early);
  EXPECT_THAT(early.error().message, HasSubstr("no plan on the device"));
  const auto written = device->write(drafted.plan, drafted.tables);
  if (!written && written.error().code == support::ErrorCode::Environment)
    GTEST_SKIP() << written.error().message;
  ASSERT_TRUE(written.ok()) << written.error().message;
  ASSERT_TRUE(device->upload(nullptr).ok());
  ASSERT_TRUE(device->draft(mask.input(), nullptr).ok());
  EXPECT_TRUE(device->checkReplays().ok());

  mask.lengths[0] = 51;
  ASSERT_TRUE(device->draft(mask.input(), nullptr).ok());
  auto noticed = device->checkReplays();
  ASSERT_FALSE(noticed);
  EXPECT_THAT(noticed.error().message, HasSubstr("request 0 had 51 tokens before its drafts"));
  EXPECT_TRUE(device->checkReplays().ok()) << "told once";
  mask.lengths[0] = 50;
  mask.bits[2 * 9] = 0;
  ASSERT_TRUE(device->draft(mask.input(), nullptr).ok());
  noticed = device->checkReplays();
  ASSERT_FALSE(noticed);
  EXPECT_THAT(noticed.error().message, StartsWith("bits[0]["));
  const std::vector<int> lengths{42};
  EXPECT_FALSE(device->follow(lengths.data(), nullptr));

  tree::KvTree plain;
  (void)plain.addQuery(*plain.addNode(-1, 42, 0));
  ASSERT_TRUE(device->write(gpu.makePlan(plain)).ok());
  ASSERT_TRUE(device->upload(nullptr).ok());
  const auto refused = device->draft(mask.input(), nullptr);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("has no requests with drafts"));
}

} // namespace
} // namespace deft::exec
