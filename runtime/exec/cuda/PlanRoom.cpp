#include "runtime/exec/cuda/PlanRoom.h"

#include "compiler/kernels/KernelShape.h"

#include "compiler/support/InOrder.h"
#include "runtime/exec/Selection.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

namespace deft::exec {

using support::Error;
using support::ErrorCode;
using support::inOrder;
using support::Result;

namespace {

constexpr std::size_t kAlignment = 16; ///< of a section: kernels read items by 16 bytes

std::size_t aligned(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

int sizeOf(const auto &values) { return static_cast<int>(values.size()); }

Error tooMany(int has, const std::string &what, int most) {
  return Error{ErrorCode::Usage,
               "the plan has " + std::to_string(has) + " " + what + ", there is room for " +
                   std::to_string(most),
               "give more room, and capture graphs again"};
}

/// A quarter more than is needed, so that a tree that grows step by step does not need new memory each time,
/// and a phase or a merge map that is empty now may have something in the next step.
void grow(int &room, int has) {
  if (has > room || room == 0)
    room = has + has / 4 + 16;
}

void copyTo(std::byte *to, const auto &values) {
  if (!values.empty())
    std::memcpy(to, values.data(), values.size() * sizeof(values[0]));
}

/// What is counted.
struct Counted {
  const plan::Plan &plan;
  const plan::DraftTables &drafts;
  const SelectingTables &selecting;
};
struct Count {
  int PlanCounts::*room;
  const char *what;
  int (*of)(const Counted &);
  bool isInAllPlans = true;               ///< else plans without them want no room for them
  int (*most)(const Counted &) = nullptr; ///< while leaves grow; null: they stay as many
};
constexpr bool kOfSome = false;
constexpr Count kCounts[] = {
    {&PlanCounts::queries, "queries", [](const Counted &in) { return in.plan.queryCount(); }},
    {&PlanCounts::runs, "runs", [](const Counted &in) { return sizeOf(in.plan.runs); }, true,
     [](const Counted &in) { return std::max(sizeOf(in.plan.runs), in.plan.mostRuns); }},
    {&PlanCounts::mergedQueries, "merged queries",
     [](const Counted &in) { return sizeOf(in.plan.mergeQuery); }},
    {&PlanCounts::mergeSlots, "merged partials", [](const Counted &in) { return sizeOf(in.plan.mergeSlot); }},
    {&PlanCounts::partialSlots, "partials", [](const Counted &in) { return in.plan.partialSlots; }},
    {&PlanCounts::draftRequests, "requests with drafts",
     [](const Counted &in) { return sizeOf(in.drafts.requests); }, kOfSome},
    {&PlanCounts::draftItems, "items with drafts", [](const Counted &in) { return sizeOf(in.drafts.items); },
     kOfSome},
    {&PlanCounts::draftParts, "parts of drafts", [](const Counted &in) { return sizeOf(in.drafts.parts); },
     kOfSome},
    {&PlanCounts::heldWords, "words of drafts over ranks",
     [](const Counted &in) { return sizeOf(in.drafts.held); }, kOfSome},
    {&PlanCounts::positions, "tokens on a path", [](const Counted &in) { return in.selecting.positions; },
     kOfSome},
    {&PlanCounts::stretches, "stretches of paths",
     [](const Counted &in) { return sizeOf(in.selecting.stretches); }, kOfSome},
    {&PlanCounts::unitedQueries, "queries that read unions of lists",
     [](const Counted &in) { return in.selecting.unitedQueries(); }, kOfSome},
};
static_assert(sizeof kCounts / sizeof(Count) == sizeof(PlanCounts) / sizeof(int),
              "each of PlanCounts has a row");

/// In the order in which they lie.
struct Section {
  std::size_t SectionOffsets::*begin;
  std::size_t bytes; ///< of an element
  int (*count)(const PlanRoom &);
  bool (*isThere)(const PlanRoom &) = [](const PlanRoom &) { return true; };
};
constexpr auto kOne = [](const PlanRoom &) { return 1; };
constexpr auto kQueries = [](const PlanRoom &room) { return room.queries; };
constexpr auto kQueryEnds = [](const PlanRoom &room) { return room.queries + 1; };
constexpr auto kItems = [](const PlanRoom &room) { return room.allItems(); };
constexpr auto kRuns = [](const PlanRoom &room) { return room.runs; };
constexpr auto kGrows = [](const PlanRoom &room) { return room.growsOnDevice; };
constexpr auto kHasDrafts = [](const PlanRoom &room) { return room.draftRequests > 0; };
constexpr auto kSelects = [](const PlanRoom &room) { return room.budget > 0; };
constexpr Section kSections[] = {
    {&PlanSections::runsOfPlan, kAlignment, kOne},
#define DEFT_SECTION(NAME) {&PlanSections::NAME, sizeof(int), kQueries},
    DEFT_ARRAYS_OF_QUERIES(DEFT_SECTION)
#undef DEFT_SECTION
        {&PlanSections::mergeQuery, sizeof(int), [](const PlanRoom &room) { return room.mergedQueries; }},
    {&PlanSections::mergeBegin, sizeof(int), [](const PlanRoom &room) { return room.mergedQueries + 1; }},
    {&PlanSections::mergeSlot, sizeof(int), [](const PlanRoom &room) { return room.mergeSlots; }},
    {&PlanSections::items, sizeof(abi::Item), kItems},
    {&PlanSections::growingLeaves, sizeof(abi::GrowingLeaf), kQueries, kGrows},
    {&PlanSections::growingItems, sizeof(int), kItems, kGrows},
    {&PlanSections::grownQueries, sizeof(abi::Grown), kQueries, kGrows},
    {&PlanSections::grownRuns, sizeof(abi::Grown), kRuns, kGrows},
    {&PlanSections::draftRequests, sizeof(abi::DraftRequest),
     [](const PlanRoom &room) { return room.draftRequests; }, kHasDrafts},
    {&PlanSections::draftItems, sizeof(abi::DraftItem), [](const PlanRoom &room) { return room.draftItems; },
     kHasDrafts},
    {&PlanSections::draftParts, sizeof(abi::DraftPart), [](const PlanRoom &room) { return room.draftParts; },
     kHasDrafts},
    {&PlanSections::held, sizeof(unsigned), [](const PlanRoom &room) { return room.heldWords; }, kHasDrafts},
    {&PlanSections::queryAt, sizeof(int), kQueries, kHasDrafts},
    {&PlanSections::selected, sizeof(abi::Selected) + sizeof(abi::Unions), kOne, kSelects},
    {&PlanSections::stretchBegin, sizeof(int), kQueryEnds, kSelects},
    {&PlanSections::stretches, sizeof(abi::PathStretch), [](const PlanRoom &room) { return room.stretches; },
     kSelects},
    {&PlanSections::sparseItems, sizeof(abi::Item), [](const PlanRoom &room) { return room.sparseItems; },
     kSelects},
    {&PlanSections::sparseMergeQuery, sizeof(int), kQueries, kSelects},
    {&PlanSections::sparseMergeBegin, sizeof(int), kQueryEnds, kSelects},
    {&PlanSections::sparseMergeSlot, sizeof(int), [](const PlanRoom &room) { return room.sparsePartials; },
     kSelects},
    {&PlanSections::unions, sizeof(abi::Union), [](const PlanRoom &room) { return room.unions() + 1; },
     kSelects},
    {&PlanSections::unitedItems, sizeof(abi::Item), [](const PlanRoom &room) { return room.unitedItems; },
     kSelects},
    {&PlanSections::runs, sizeof(abi::Run), kRuns},
};
static_assert(sizeof kSections / sizeof(Section) == sizeof(SectionOffsets) / sizeof(std::size_t),
              "each of SectionOffsets has a row");

} // namespace

PlanRoom PlanRoom::of(const plan::Plan &plan, const plan::DraftTables &drafts,
                      const SelectingTables &selecting) {
  PlanRoom room;
  for (const Count &count : kCounts)
    room.*count.room = count.of({plan, drafts, selecting});
  for (const plan::Plan::Phase &phase : plan.phases)
    room.items.push_back(phase.itemCount);
  return room;
}

Result<void> PlanRoom::check(const plan::Plan &plan, const plan::DraftTables &drafts,
                             const SelectingTables &selecting) const {
  if (plan.phases.size() != items.size())
    return Error{ErrorCode::Internal,
                 "the plan has " + std::to_string(plan.phases.size()) + " phases, there is room for " +
                     std::to_string(items.size()),
                 ""};
  for (const Count &count : kCounts)
    if (const int has = count.of({plan, drafts, selecting}); has > this->*count.room)
      return tooMany(has, count.what, this->*count.room);
  for (std::size_t p = 0; p < items.size(); ++p)
    if (plan.phases[p].itemCount > items[p])
      return tooMany(plan.phases[p].itemCount,
                     items.size() == 1 ? "items" : "items in phase " + std::to_string(p), items[p]);
  return {};
}

Result<void> PlanRoom::checkCounted(const spec::Variant &variant) const {
  constexpr int kStep = 1 << 24; // loops step beyond what they count, by less than this
  constexpr std::int64_t kMost = std::numeric_limits<int>::max() - kStep;
  constexpr int kWarp = 32, kMostBlocksOfList = 8;
  const auto counted = [](const char *what, std::int64_t count, std::int64_t each,
                          const char *ofEach) -> Result<void> {
    if (count * each <= kMost)
      return {};
    return Error{ErrorCode::Usage,
                 "room for " + std::to_string(count) + " " + what + " of " + std::to_string(each) + " " +
                     ofEach + " is for more than the " + std::to_string(kMost) + " that kernels count",
                 "give less room"};
  };
  std::int64_t allItems = 0, itemsOfPhase = 0;
  for (const int most : items) {
    allItems += most;
    itemsOfPhase = std::max<std::int64_t>(itemsOfPhase, most);
  }
  const int lists = budget > 0 ? variant.lists() : 1;
  return inOrder(
      [&] { return counted("queries", std::max(queries, mergedQueries), variant.queryHeads, "query heads"); },
      [&] {
        return counted("partials", std::max(partialSlots, sparsePartials), variant.queryHeads, "query heads");
      },
      [&] {
        return counted("items", itemsOfPhase, kernels::KernelShape::of(variant).unitsOfItem(), "KV heads");
      },
      [&] { return counted("items", allItems, kWarp, "threads"); },
      [&] {
        return counted("sparse items", std::max(sparseItems, unitedItems),
                       std::max(kernels::KernelShape::of(variant).unitsOfItem(), lists), "units");
      },
      [&] {
        return counted("queries", budget > 0 ? queries : 0, std::int64_t{lists} * kMostBlocksOfList,
                       "blocks that select");
      });
}

void PlanRoom::growTo(const PlanRoom &other) {
  for (const Count &count : kCounts)
    this->*count.room = std::max(this->*count.room, other.*count.room);
  items.resize(std::max(items.size(), other.items.size()));
  for (std::size_t p = 0; p < other.items.size(); ++p)
    items[p] = std::max(items[p], other.items[p]);
}

void PlanRoom::growFor(const plan::Plan &plan, const plan::DraftTables &drafts,
                       const SelectingTables &selecting) {
  const Counted counted{plan, drafts, selecting};
  for (const Count &count : kCounts)
    if (count.isInAllPlans || count.of(counted) > 0)
      grow(this->*count.room, count.most ? count.most(counted) : count.of(counted));
  items.resize(plan.phases.size());
  for (std::size_t p = 0; p < items.size(); ++p)
    grow(items[p], plan.phases[p].itemCount);
}

PlanSections PlanSections::of(const PlanRoom &room) {
  PlanSections sections;
  for (const Section &section : kSections) {
    sections.*section.begin = sections.end;
    if (section.isThere(room))
      sections.end = aligned(sections.end + static_cast<std::size_t>(section.count(room)) * section.bytes);
  }
  int items = 0;
  for (const int most : room.items) {
    sections.itemBegin.push_back(items);
    items += most;
  }
  return sections;
}

int itemOnDevice(const plan::Plan &plan, const PlanSections &sections, int item) {
  std::size_t phase = 0;
  while (item >= plan.phases[phase].itemBegin + plan.phases[phase].itemCount)
    ++phase;
  return sections.itemBegin[phase] + item - plan.phases[phase].itemBegin;
}

RoomBytes RoomBytes::of(const PlanRoom &room, const spec::Variant &variant) {
  constexpr std::size_t kPartialBytes = 2; // of a value: deft::Partial
  const auto product = [](auto... factors) {
    return (std::size_t{1} * ... * static_cast<std::size_t>(factors));
  };
  const std::size_t rows = product(std::max(room.partialSlots, room.sparsePartials), variant.queryHeads);
  RoomBytes bytes{
      .plan = PlanSections::of(room).end,
      .partialOut = product(rows, variant.tensors.out.dim, kPartialBytes),
      .partialLse = product(rows, sizeof(float)),
      .queries = variant.query ? product(room.queries, variant.queryHeads, variant.tensors.q.rowBytes()) : 0};
  if (room.budget == 0)
    return bytes;
  bytes.unions = product(room.unitedQueries, variant.lists(), room.budget, sizeof(int));
  bytes.unionCounts = product(room.unions(), variant.lists(), sizeof(int));
  if (variant.readsGivenLists()) // which lie in a caller's memory
    return bytes;
  bytes.worth = product(room.queries, variant.worthGroups(), worthStride(room.positions), sizeof(unsigned));
  bytes.lists = product(room.queries, variant.lists(), room.budget, sizeof(int));
  bytes.counts = product(room.queries, variant.lists(), sizeof(int));
  return bytes;
}

std::size_t writeSections(const plan::Plan &plan, const PlanRoom &room, const PlanSections &sections,
                          std::byte *to, FilledCounts &filled) {
  // Blanks what was filled behind the first `count` entries.
  const auto blank = [](std::byte *entries, std::size_t size, int value, int count, int &wasFilled) {
    if (count < wasFilled)
      std::memset(entries + static_cast<std::size_t>(count) * size, value,
                  static_cast<std::size_t>(wasFilled - count) * size);
    wasFilled = count;
  };
  std::memset(to + sections.runsOfPlan, 0, kAlignment);
#define DEFT_COPY(NAME) copyTo(to + sections.NAME, plan.NAME);
  DEFT_ARRAYS_OF_QUERIES(DEFT_COPY)
#undef DEFT_COPY
  constexpr int kMinusOne = 0xff; // in each byte: nobody is there, or the list ends
  blank(to + sections.callerIndex, sizeof(int), kMinusOne, static_cast<int>(plan.callerIndex.size()),
        filled.callers);
  copyTo(to + sections.mergeQuery, plan.mergeQuery);
  blank(to + sections.mergeQuery, sizeof(int), kMinusOne, static_cast<int>(plan.mergeQuery.size()),
        filled.merged);
  copyTo(to + sections.mergeBegin, plan.mergeBegin);
  copyTo(to + sections.mergeSlot, plan.mergeSlot);
  for (std::size_t p = 0; p < plan.phases.size(); ++p) {
    const plan::Plan::Phase &phase = plan.phases[p];
    std::byte *items = to + sections.items + sections.itemBegin[p] * sizeof(abi::Item);
    if (phase.itemCount > 0)
      std::memcpy(items, plan.items.data() + phase.itemBegin,
                  static_cast<std::size_t>(phase.itemCount) * sizeof(abi::Item));
    blank(items, sizeof(abi::Item), 0, phase.itemCount, filled.items[p]);
  }
  if (std::byte *const runs = to + sections.runs;
      runs != reinterpret_cast<const std::byte *>(plan.runs.data()))
    copyTo(runs, plan.runs);
  return sections.runs + plan.runs.size() * sizeof(abi::Run);
}

} // namespace deft::exec
