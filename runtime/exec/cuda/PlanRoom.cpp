#include "runtime/exec/cuda/PlanRoom.h"

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

} // namespace

PlanRoom PlanRoom::of(const plan::Plan &plan, const plan::DraftTables &drafts) {
  PlanRoom room{.queries = plan.queryCount(),
                .runs = sizeOf(plan.runs),
                .mergedQueries = sizeOf(plan.mergeQuery),
                .mergeSlots = sizeOf(plan.mergeSlot),
                .partialSlots = plan.partialSlots,
                .items = {},
                .draftRequests = sizeOf(drafts.requests),
                .draftItems = sizeOf(drafts.items),
                .draftParts = sizeOf(drafts.parts)};
  for (const plan::Plan::Phase &phase : plan.phases)
    room.items.push_back(phase.itemCount);
  return room;
}

void PlanRoom::setFor(const SelectingTables &selecting) {
  positions = selecting.positions;
  stretches = sizeOf(selecting.stretches);
  unitedQueries = selecting.unitedQueries();
}

Result<void> PlanRoom::check(const SelectingTables &selecting) const {
  if (selecting.positions > positions)
    return tooMany(selecting.positions, "tokens on a path", positions);
  if (sizeOf(selecting.stretches) > stretches)
    return tooMany(sizeOf(selecting.stretches), "stretches of paths", stretches);
  if (selecting.unitedQueries() > unitedQueries)
    return tooMany(selecting.unitedQueries(), "queries that read their lists as one", unitedQueries);
  return {};
}

void PlanRoom::growFor(const SelectingTables &selecting) {
  grow(positions, selecting.positions);
  grow(stretches, sizeOf(selecting.stretches));
  if (selecting.unitedQueries() > 0)
    grow(unitedQueries, selecting.unitedQueries());
}

Result<void> PlanRoom::check(const plan::Plan &plan, const plan::DraftTables &drafts) const {
  if (plan.phases.size() != items.size())
    return Error{ErrorCode::Internal,
                 "the plan has " + std::to_string(plan.phases.size()) + " phases, there is room for " +
                     std::to_string(items.size()),
                 ""};
  if (plan.queryCount() > queries)
    return tooMany(plan.queryCount(), "queries", queries);
  for (std::size_t p = 0; p < items.size(); ++p)
    if (plan.phases[p].itemCount > items[p])
      return tooMany(plan.phases[p].itemCount,
                     items.size() == 1 ? "items" : "items in phase " + std::to_string(p), items[p]);
  if (sizeOf(plan.runs) > runs)
    return tooMany(sizeOf(plan.runs), "runs", runs);
  if (sizeOf(plan.mergeQuery) > mergedQueries)
    return tooMany(sizeOf(plan.mergeQuery), "merged queries", mergedQueries);
  if (sizeOf(plan.mergeSlot) > mergeSlots)
    return tooMany(sizeOf(plan.mergeSlot), "merged partials", mergeSlots);
  if (plan.partialSlots > partialSlots)
    return tooMany(plan.partialSlots, "partials", partialSlots);
  if (sizeOf(drafts.requests) > draftRequests)
    return tooMany(sizeOf(drafts.requests), "requests with drafts", draftRequests);
  if (sizeOf(drafts.items) > draftItems)
    return tooMany(sizeOf(drafts.items), "items with drafts", draftItems);
  if (sizeOf(drafts.parts) > draftParts)
    return tooMany(sizeOf(drafts.parts), "parts of drafts", draftParts);
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
      [&] { return counted("items", itemsOfPhase, variant.kvHeads, "KV heads"); },
      [&] { return counted("items", allItems, kWarp, "threads"); },
      [&] {
        return counted("sparse items", std::max(sparseItems, unitedItems), std::max(variant.kvHeads, lists),
                       "units");
      },
      [&] {
        return counted("queries", budget > 0 ? queries : 0, std::int64_t{lists} * kMostBlocksOfList,
                       "blocks that select");
      });
}

void PlanRoom::growTo(const PlanRoom &other) {
  queries = std::max(queries, other.queries);
  runs = std::max(runs, other.runs);
  mergedQueries = std::max(mergedQueries, other.mergedQueries);
  mergeSlots = std::max(mergeSlots, other.mergeSlots);
  partialSlots = std::max(partialSlots, other.partialSlots);
  items.resize(std::max(items.size(), other.items.size()));
  for (std::size_t p = 0; p < other.items.size(); ++p)
    items[p] = std::max(items[p], other.items[p]);
  draftRequests = std::max(draftRequests, other.draftRequests);
  draftItems = std::max(draftItems, other.draftItems);
  draftParts = std::max(draftParts, other.draftParts);
  positions = std::max(positions, other.positions);
  stretches = std::max(stretches, other.stretches);
  unitedQueries = std::max(unitedQueries, other.unitedQueries);
}

void PlanRoom::growFor(const plan::Plan &plan, const plan::DraftTables &drafts) {
  grow(queries, plan.queryCount());
  grow(runs, std::max(sizeOf(plan.runs), plan.mostRuns));
  grow(mergedQueries, sizeOf(plan.mergeQuery));
  grow(mergeSlots, sizeOf(plan.mergeSlot));
  grow(partialSlots, plan.partialSlots);
  items.resize(plan.phases.size());
  for (std::size_t p = 0; p < items.size(); ++p)
    grow(items[p], plan.phases[p].itemCount);
  if (drafts.isEmpty())
    return;
  grow(draftRequests, sizeOf(drafts.requests));
  grow(draftItems, sizeOf(drafts.items));
  grow(draftParts, sizeOf(drafts.parts));
}

PlanSections PlanSections::of(const PlanRoom &room) {
  PlanSections sections;
  std::size_t end = kAlignment; // runsOfPlan stands alone at the front
  const auto section = [&](std::size_t &begin, int count, std::size_t bytes) {
    begin = end;
    end = aligned(end + static_cast<std::size_t>(count) * bytes);
  };
  section(sections.callerIndex, room.queries, sizeof(int));
  section(sections.queryPos, room.queries, sizeof(int));
  section(sections.mergeQuery, room.mergedQueries, sizeof(int));
  section(sections.mergeBegin, room.mergedQueries + 1, sizeof(int));
  section(sections.mergeSlot, room.mergeSlots, sizeof(int));
  int items = 0;
  for (const int most : room.items) {
    sections.itemBegin.push_back(items);
    items += most;
  }
  section(sections.items, items, sizeof(abi::Item));
  if (room.growsOnDevice) {
    section(sections.growingLeaves, room.queries, sizeof(abi::GrowingLeaf));
    section(sections.growingItems, items, sizeof(int));
    section(sections.grownQueries, room.queries, sizeof(abi::Grown));
    section(sections.grownRuns, room.runs, sizeof(abi::Grown));
  }
  if (room.draftRequests > 0) {
    section(sections.draftRequests, room.draftRequests, sizeof(abi::DraftRequest));
    section(sections.draftItems, room.draftItems, sizeof(abi::DraftItem));
    section(sections.draftParts, room.draftParts, sizeof(abi::DraftPart));
    section(sections.queryAt, room.queries, sizeof(int));
  }
  if (room.budget > 0) {
    section(sections.selected, 1, sizeof(abi::Selected) + sizeof(abi::Unions));
    section(sections.stretchBegin, room.queries + 1, sizeof(int));
    section(sections.stretches, room.stretches, sizeof(abi::PathStretch));
    section(sections.sparseItems, room.sparseItems, sizeof(abi::Item));
    section(sections.sparseMergeQuery, room.queries, sizeof(int));
    section(sections.sparseMergeBegin, room.queries + 1, sizeof(int));
    section(sections.sparseMergeSlot, room.sparsePartials, sizeof(int));
    section(sections.unions, room.unions() + 1, sizeof(abi::Union));
    section(sections.unitedItems, room.unitedItems, sizeof(abi::Item));
  }
  section(sections.runs, room.runs, sizeof(abi::Run));
  sections.end = end;
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
  bytes.worth = product(room.queries, worthGroupsOf(variant), worthStride(room.positions), sizeof(unsigned));
  bytes.lists = product(room.queries, variant.lists(), room.budget, sizeof(int));
  bytes.counts = product(room.queries, variant.lists(), sizeof(int));
  bytes.unions = product(room.unitedQueries, variant.lists(), room.budget, sizeof(int));
  bytes.unionCounts = product(room.unions(), variant.lists(), sizeof(int));
  return bytes;
}

std::size_t writeSections(const plan::Plan &plan, const PlanRoom &room, const PlanSections &sections,
                          std::byte *to) {
  std::memset(to + sections.runsOfPlan, 0, kAlignment);
  copyTo(to + sections.callerIndex, plan.callerIndex);
  const std::size_t callers = plan.callerIndex.size() * sizeof(int);
  std::memset(to + sections.callerIndex + callers, 0xff, // -1: nobody is there
              static_cast<std::size_t>(room.queries) * sizeof(int) - callers);
  copyTo(to + sections.queryPos, plan.queryPos);
  copyTo(to + sections.mergeQuery, plan.mergeQuery);
  const std::size_t merged = plan.mergeQuery.size() * sizeof(int);
  std::memset(to + sections.mergeQuery + merged, 0xff, // -1: the list ends here
              static_cast<std::size_t>(room.mergedQueries) * sizeof(int) - merged);
  copyTo(to + sections.mergeBegin, plan.mergeBegin);
  copyTo(to + sections.mergeSlot, plan.mergeSlot);
  for (std::size_t p = 0; p < plan.phases.size(); ++p) {
    const plan::Plan::Phase &phase = plan.phases[p];
    std::byte *items = to + sections.items + sections.itemBegin[p] * sizeof(abi::Item);
    const std::size_t bytes = static_cast<std::size_t>(phase.itemCount) * sizeof(abi::Item);
    if (bytes > 0)
      std::memcpy(items, plan.items.data() + phase.itemBegin, bytes);
    std::memset(items + bytes, 0, static_cast<std::size_t>(room.items[p]) * sizeof(abi::Item) - bytes);
  }
  if (std::byte *const runs = to + sections.runs;
      runs != reinterpret_cast<const std::byte *>(plan.runs.data()))
    copyTo(runs, plan.runs);
  return sections.runs + plan.runs.size() * sizeof(abi::Run);
}

} // namespace deft::exec
