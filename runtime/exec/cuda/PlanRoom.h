#pragma once

#include "compiler/spec/Variant.h"
#include "compiler/support/Result.h"
#include "runtime/exec/cuda/SelectingTables.h"
#include "runtime/plan/Drafts.h"
#include "runtime/plan/Plan.h"

#include <cstddef>
#include <numeric>
#include <vector>

/// How a plan lies on a device: sections at places that depend on the room alone, so that a captured graph
/// finds the next step's plan where it found this one's. Runs stand last, so that as much is copied as there
/// is; each phase's items and the merge map are ended by marks, because a captured graph knows no counts.
/// What only the host reads, leaves and tails, is left out.
namespace deft::exec {

/// What trees decide: a plan has so many of each, and room for so many at most. The table of PlanRoom.cpp
/// says how plans count them; one that is missing there does not compile.
struct PlanCounts {
  int queries = 0;
  int runs = 0;
  int mergedQueries = 0;
  int mergeSlots = 0;
  int partialSlots = 0; ///< not in the plan's memory, but in the scratch memory beside it
  // Of plans with drafts, plan::DraftTables; no requests: there are no tables for them.
  int draftRequests = 0;
  int draftItems = 0;
  int draftParts = 0;
  // Of plans that select.
  int positions = 0;     ///< that a path has
  int stretches = 0;     ///< of all paths
  int unitedQueries = 0; ///< that read their lists as one with others
};

/// The most that a plan may have.
struct PlanRoom : PlanCounts {
  std::vector<int> items;     ///< of each phase
  bool growsOnDevice = false; ///< there are tables for PlanGrowth, too

  // What follows from the counts of plans that select (PlanSelecting::completeRoom); a budget of 0: nothing
  // is selected.
  int budget = 0; ///< tokens of a list
  int sparseItems = 0;
  int unitedItems = 0;    ///< of united queries
  int sparsePartials = 0; ///< of both

  int unions() const { return unitedQueries / 2; }
  int allItems() const { return std::accumulate(items.begin(), items.end(), 0); }

  /// Just what the plan has.
  static PlanRoom of(const plan::Plan &plan, const plan::DraftTables &drafts = {},
                     const SelectingTables &selecting = {});

  /// An error where kernels of the variant, which count in 32 bits, could not count all that there is room
  /// for.
  support::Result<void> checkCounted(const spec::Variant &variant) const;

  /// The first count that exceeds the room.
  support::Result<void> check(const plan::Plan &plan, const plan::DraftTables &drafts = {},
                              const SelectingTables &selecting = {}) const;

  /// At least what the other one has of everything.
  void growTo(const PlanRoom &other);

  /// Enough for the plan and for what this had, with room to grow where the plan has more.
  void growFor(const plan::Plan &plan, const plan::DraftTables &drafts = {},
               const SelectingTables &selecting = {});
};

/// The plan's arrays of an int for each query. They have these names in plan::Plan, among the sections and in
/// abi::AttendArgs, and the first of all is the first of these.
#define DEFT_ARRAYS_OF_QUERIES(X)                                                                            \
  X(callerIndex)                                                                                             \
  X(queryPos)

/// Where the sections begin, in bytes. The table of PlanRoom.cpp says what each has and in which order they
/// lie; one that is missing there does not compile.
struct SectionPlaces {
  std::size_t runsOfPlan = 0; ///< an abi::MergeArgs::runsOfPlan, 0 in a new plan
#define DEFT_PLACE(NAME) std::size_t NAME = 0;
  DEFT_ARRAYS_OF_QUERIES(DEFT_PLACE)
#undef DEFT_PLACE
  std::size_t mergeQuery = 0, mergeBegin = 0, mergeSlot = 0, items = 0;
  std::size_t growingLeaves = 0, growingItems = 0, grownQueries = 0,
              grownRuns = 0;                                                  ///< as abi::GrowArgs has them
  std::size_t draftRequests = 0, draftItems = 0, draftParts = 0, queryAt = 0; ///< as abi::DraftArgs has them
  std::size_t selected = 0, stretchBegin = 0, stretches = 0; ///< an abi::Selected, and what it points to
  std::size_t sparseItems = 0, sparseMergeQuery = 0, sparseMergeBegin = 0, sparseMergeSlot = 0;
  std::size_t unions = 0, unitedItems = 0; ///< of unions, so many and one that ends them
  std::size_t runs = 0;                    ///< last, and only as much as there is of it is copied
};
struct PlanSections : SectionPlaces {
  std::size_t end = 0;
  std::vector<int> itemBegin; ///< of each phase, within the items

  static PlanSections of(const PlanRoom &room);
};

/// The place among all items there of one of the plan's.
int itemOnDevice(const plan::Plan &plan, const PlanSections &sections, int item);

/// Memory that a room takes.
struct RoomBytes {
  std::size_t plan = 0; ///< on the device, and twice in the host's page-locked memory
  std::size_t partialOut = 0, partialLse = 0;
  std::size_t queries = 0;                      ///< what a hook of q makes of it
  std::size_t worth = 0, lists = 0, counts = 0; ///< lists: of positions, and as much of places
  std::size_t unions = 0, unionCounts = 0; ///< unions: of positions, and as much of places, and of readers

  std::size_t onDevice() const {
    return plan + partialOut + partialLse + queries + worth + 2 * lists + counts + 3 * unions + unionCounts;
  }

  static RoomBytes of(const PlanRoom &room, const spec::Variant &variant);
};

/// Writes a plan that fits the room, all but its runs where they stand there already; returns how many bytes
/// of `to` a device needs. The room behind a phase's items has items of no tokens, which end its list
/// wherever a block looks for one more.
std::size_t writeSections(const plan::Plan &plan, const PlanRoom &room, const PlanSections &sections,
                          std::byte *to);

} // namespace deft::exec
