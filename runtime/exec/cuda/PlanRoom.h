#pragma once

#include "compiler/spec/Variant.h"
#include "compiler/support/Result.h"
#include "runtime/exec/cuda/SelectingTables.h"
#include "runtime/plan/Drafts.h"
#include "runtime/plan/Plan.h"

#include <cstddef>
#include <numeric>
#include <vector>

/// The layout of a plan on a device. The offsets of its sections depend only on the room, so a captured graph
/// finds the next plan where this one was. Runs come last, so only the used part is copied. Marks end each
/// phase's items and the merge map, because a captured graph does not know counts. Data that only the host
/// reads, such as leaves and tails, is left out.
namespace deft::exec {

/// The counts that depend on trees: those of a plan, or the most that a room holds. The table in PlanRoom.cpp
/// says how to count each in a plan; a count without a row there does not compile.
struct PlanCounts {
  int queries = 0;
  int runs = 0;
  int mergedQueries = 0;
  int mergeSlots = 0;
  int partialSlots = 0; ///< in the scratch memory, not the plan's
  // For plans with drafts: plan::DraftTables. 0 requests: the room has no such tables.
  int draftRequests = 0;
  int draftItems = 0;
  int draftParts = 0;
  int heldWords = 0; ///< of trees over ranks
  // For plans that select:
  int positions = 0;     ///< positions of a path
  int stretches = 0;     ///< over all paths
  int unitedQueries = 0; ///< read their lists as part of a union
};

/// The largest plan that fits.
struct PlanRoom : PlanCounts {
  std::vector<int> items;     ///< of each phase
  bool growsOnDevice = false; ///< has tables for PlanGrowth

  // For plans that select, computed from the counts (PlanSelecting::completeRoom). A budget of 0: nothing is
  // selected.
  int budget = 0; ///< tokens of a list
  int sparseItems = 0;
  int unitedItems = 0;    ///< for queries in unions
  int sparsePartials = 0; ///< for both kinds of items

  int unions() const { return unitedQueries / 2; }
  int allItems() const { return std::accumulate(items.begin(), items.end(), 0); }

  /// The smallest room for the plan.
  static PlanRoom of(const plan::Plan &plan, const plan::DraftTables &drafts = {},
                     const SelectingTables &selecting = {});

  /// An error if the room has more queries, partials or units than kernels of the variant can count in 32
  /// bits.
  support::Result<void> checkCounted(const spec::Variant &variant) const;

  /// An error that names the first count that exceeds the room.
  support::Result<void> check(const plan::Plan &plan, const plan::DraftTables &drafts = {},
                              const SelectingTables &selecting = {}) const;

  /// Grows every count to at least that of the other room.
  void growTo(const PlanRoom &other);

  /// Grows to hold the plan as well; counts that must grow get some extra room.
  void growFor(const plan::Plan &plan, const plan::DraftTables &drafts = {},
               const SelectingTables &selecting = {});
};

/// The plan's arrays with one int per query, by their names in plan::Plan, among the sections and in
/// abi::AttendArgs. The first one is the plan's first array in memory.
#define DEFT_ARRAYS_OF_QUERIES(X)                                                                            \
  X(callerIndex)                                                                                             \
  X(queryPos)

/// Where the sections begin, in bytes. The table in PlanRoom.cpp says what each contains, and their order; a
/// section without a row there does not compile.
struct SectionOffsets {
  std::size_t runsOfPlan = 0; ///< an abi::MergeArgs::runsOfPlan; 0 in a new plan
#define DEFT_OFFSET(NAME) std::size_t NAME = 0;
  DEFT_ARRAYS_OF_QUERIES(DEFT_OFFSET)
#undef DEFT_OFFSET
  std::size_t mergeQuery = 0, mergeBegin = 0, mergeSlot = 0, items = 0;
  std::size_t growingLeaves = 0, growingItems = 0, grownQueries = 0,
              grownRuns = 0; ///< as in abi::GrowArgs
  std::size_t draftRequests = 0, draftItems = 0, draftParts = 0, held = 0,
              queryAt = 0;                                   ///< as in abi::DraftArgs
  std::size_t selected = 0, stretchBegin = 0, stretches = 0; ///< an abi::Selected and its arrays
  std::size_t sparseItems = 0, sparseMergeQuery = 0, sparseMergeBegin = 0, sparseMergeSlot = 0;
  std::size_t unions = 0, unitedItems = 0; ///< unions, and one more that ends them
  std::size_t runs = 0;                    ///< last, so that only the used part is copied
};
struct PlanSections : SectionOffsets {
  std::size_t end = 0;
  std::vector<int> itemBegin; ///< of each phase, relative to the items

  static PlanSections of(const PlanRoom &room);
};

/// The index, among all items on the device, of an item of the plan.
int itemOnDevice(const plan::Plan &plan, const PlanSections &sections, int item);

/// The memory that a room needs.
struct RoomBytes {
  std::size_t plan = 0; ///< on the device, and twice in page-locked host memory
  std::size_t partialOut = 0, partialLse = 0;
  std::size_t queries = 0;                      ///< results of a hook `query`
  std::size_t worth = 0, lists = 0, counts = 0; ///< lists: of positions; places take as much
  std::size_t unions = 0, unionCounts = 0;      ///< unions: of positions; places and readers take as much

  std::size_t onDevice() const {
    return plan + partialOut + partialLse + queries + worth + 2 * lists + counts + 3 * unions + unionCounts;
  }

  static RoomBytes of(const PlanRoom &room, const spec::Variant &variant);
};

/// How many entries of a plan's memory may not be blank. The rest of the room is blank, so that a plan for
/// thousands of queries which serves a few need not blank all of it in each step.
struct FilledCounts {
  int callers = 0, merged = 0;
  std::vector<int> items; ///< of each phase

  /// For memory with unknown contents.
  static FilledCounts all(const PlanRoom &room) { return {room.queries, room.mergedQueries, room.items}; }
};

/// Writes a plan that fits the room, except runs that are already in place. Returns how many bytes of `to` a
/// device needs. Unused room behind a phase's items gets items without tokens: wherever a block looks for
/// another item there, they end the list. `filled` says what the memory holds, before and afterwards.
std::size_t writeSections(const plan::Plan &plan, const PlanRoom &room, const PlanSections &sections,
                          std::byte *to, FilledCounts &filled);

} // namespace deft::exec
