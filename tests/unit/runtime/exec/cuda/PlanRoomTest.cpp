#include "runtime/exec/cuda/PlanRoom.h"

#include "runtime/plan/Planner.h"
#include "tests/support/Forest.h"

#include <gtest/gtest.h>

#include <cstring>

namespace deft::exec {
namespace {

plan::Plan makePlan(int branches) {
  config::Config config;
  config.chunkTokens = 32;
  config.phases = {{.name = "wide", .rowsAbove = 16, .tileQ = 32}, {.name = "narrow", .tileQ = 16}};
  return *plan::makePlan(test::levelTree({1, 3, branches}, {100, 40, 20}), {.ratio = 3, .kvHeads = 2}, config,
                         8);
}

TEST(PlanRoomTest, SaysOfWhatThereIsTooMuch) {
  const plan::Plan plan = makePlan(9);
  const PlanRoom exact = PlanRoom::of(plan);
  EXPECT_TRUE(exact.check(plan).ok());
  const auto messageWith = [&](auto &&change) {
    PlanRoom room = exact;
    change(room);
    const auto checked = room.check(plan);
    return checked.ok() ? std::string() : checked.error().message;
  };
  EXPECT_EQ(messageWith([](PlanRoom &room) { --room.queries; }),
            "the plan has 9 queries, there is room for 8");
  const std::string runs = std::to_string(plan.runs.size()), fewer = std::to_string(plan.runs.size() - 1);
  EXPECT_EQ(messageWith([](PlanRoom &room) { --room.runs; }),
            "the plan has " + runs + " runs, there is room for " + fewer);
  EXPECT_NE(messageWith([](PlanRoom &room) { --room.items[1]; }).find("items in phase 1"), std::string::npos);
  EXPECT_NE(messageWith([](PlanRoom &room) { --room.mergedQueries; }).find("merged queries"),
            std::string::npos);
  EXPECT_NE(messageWith([](PlanRoom &room) { --room.mergeSlots; }).find("merged partials"),
            std::string::npos);
  EXPECT_NE(messageWith([](PlanRoom &room) { --room.partialSlots; }).find("partials"), std::string::npos);
  EXPECT_NE(messageWith([](PlanRoom &room) { room.items.pop_back(); }).find("phases"), std::string::npos);
}

TEST(PlanRoomTest, GrowsByMoreThanItMustAndNeverShrinks) {
  PlanRoom room;
  const plan::Plan large = makePlan(60), small = makePlan(3);
  room.growFor(large);
  EXPECT_TRUE(room.check(large).ok());
  EXPECT_GE(room.queries, 75);
  const PlanRoom before = room;
  room.growFor(small);
  EXPECT_EQ(room.queries, before.queries);
  EXPECT_EQ(room.items, before.items);
  plan::Plan inPages = makePlan(60);
  inPages.mostRuns = 1000; // in the next step, perhaps
  room.growFor(inPages);
  EXPECT_GE(room.runs, 1000);
}

TEST(PlanRoomTest, IsForNoMoreThanKernelsCount) {
  spec::Variant variant;
  variant.queryHeads = 32;
  variant.kvHeads = 8;
  variant.tensors = spec::Tensors::alike(64);
  variant.select = spec::SelectSpec{.budget = {}, .by = spec::SelectBy::QueryHead, .range = {}};
  const auto messageWith = [&](auto &&change) {
    PlanRoom room{{.queries = 1 << 24, .mergedQueries = 1 << 24, .partialSlots = 1 << 25}, {1 << 25}};
    change(room);
    const auto checked = room.checkCounted(variant);
    return checked ? "none" : checked.error().message;
  };
  const std::string more = " is for more than the 2130706431 that kernels count";
  EXPECT_EQ(messageWith([](PlanRoom &) {}), "none");
  EXPECT_EQ(messageWith([](PlanRoom &room) { room.mergedQueries = 1 << 26; }),
            "room for 67108864 queries of 32 query heads" + more);
  EXPECT_EQ(messageWith([](PlanRoom &room) { room.partialSlots = 1 << 26; }),
            "room for 67108864 partials of 32 query heads" + more);
  EXPECT_EQ(messageWith([](PlanRoom &room) { room.items = {1 << 28}; }),
            "room for 268435456 items of 8 KV heads" + more);
  EXPECT_EQ(messageWith([](PlanRoom &room) { room.items = {1 << 25, 1 << 25}; }),
            "room for 67108864 items of 32 threads" + more);
  EXPECT_EQ(messageWith([](PlanRoom &room) { room.budget = 64; }),
            "room for 16777216 queries of 256 blocks that select" + more);
}

TEST(PlanRoomTest, SectionsDependOnTheRoomAloneAndKeepApart) {
  PlanRoom room = PlanRoom::of(makePlan(60));
  room.growFor(makePlan(60));
  const PlanSections sections = PlanSections::of(room);
  std::vector<std::byte> buffer(sections.end, std::byte{0xee});
  FilledCounts filled = FilledCounts::all(room);
  for (const int branches : {60, 3, 30, 5}) { // what a former plan left must not be taken for the new one's
    const plan::Plan plan = makePlan(branches);
    const std::size_t bytes = writeSections(plan, room, sections, buffer.data(), filled);
    EXPECT_LE(bytes, sections.end);
    EXPECT_EQ(bytes, sections.runs + plan.runs.size() * sizeof(abi::Run));
    const auto at = [&]<typename T>(std::size_t offset, const T *) {
      EXPECT_EQ(offset % 16, 0u);
      return reinterpret_cast<const T *>(buffer.data() + offset);
    };
    const auto *items = at(sections.items, static_cast<const abi::Item *>(nullptr));
    for (std::size_t p = 0; p < plan.phases.size(); ++p) {
      const auto &phase = plan.phases[p];
      const abi::Item *own = items + sections.itemBegin[p];
      EXPECT_EQ(0, std::memcmp(own, plan.items.data() + phase.itemBegin,
                               static_cast<std::size_t>(phase.itemCount) * sizeof(abi::Item)));
      for (int end = phase.itemCount; end < room.items[p]; ++end)
        EXPECT_EQ(own[end].tokens, 0);
    }
    const auto *mergeQuery = at(sections.mergeQuery, static_cast<const int *>(nullptr));
    const auto merged = static_cast<int>(plan.mergeQuery.size());
    const auto *callers = at(sections.callerIndex, static_cast<const int *>(nullptr));
    for (int q = plan.queryCount(); q < room.queries; ++q)
      EXPECT_EQ(callers[q], -1);
    for (int m = 0; m < room.mergedQueries; ++m)
      EXPECT_EQ(mergeQuery[m], m < merged ? plan.mergeQuery[static_cast<std::size_t>(m)] : -1);
    EXPECT_EQ(0, std::memcmp(at(sections.mergeSlot, static_cast<const int *>(nullptr)), plan.mergeSlot.data(),
                             plan.mergeSlot.size() * sizeof(int)));
    EXPECT_EQ(0, std::memcmp(at(sections.callerIndex, static_cast<const int *>(nullptr)),
                             plan.callerIndex.data(), plan.callerIndex.size() * sizeof(int)));
    EXPECT_EQ(0, std::memcmp(at(sections.runs, static_cast<const abi::Run *>(nullptr)), plan.runs.data(),
                             plan.runs.size() * sizeof(abi::Run)));
    EXPECT_EQ(*at(sections.runsOfPlan, static_cast<const unsigned long long *>(nullptr)), 0u);
  }
}

} // namespace
} // namespace deft::exec
