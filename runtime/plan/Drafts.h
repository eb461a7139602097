#pragma once

#include "compiler/support/Result.h"
#include "runtime/plan/HeldSlots.h"
#include "runtime/plan/Plan.h"
#include "runtime/tree/DraftStandIn.h"
#include "templates/deft/draft_abi.h"

#include <optional>
#include <span>
#include <vector>

namespace deft::plan {

/// The tables from which placeDrafts() (on the host) or a kernel writes a plan with room for drafts.
struct DraftTables {
  std::vector<abi::DraftRequest> requests; ///< some may gain nothing
  std::vector<abi::DraftItem> items;       ///< by their number in the plan
  std::vector<abi::DraftPart> parts;
  std::vector<unsigned> held;  ///< with ranks: which slots lie in this cache (abi::DraftArgs)
  std::vector<int> queryAt;    ///< by the first draft's query (caller's index) + the place
  std::vector<int> firstSlots; ///< of each request: the place of its first slot in the table

  bool isEmpty() const { return requests.empty(); }
};

/// Removes the stand-ins (tree::DraftStandIn) from a plan and reserves a run for each draft behind the other
/// runs of each item. Until placeDrafts() has filled them, the items' runs and tokens do not count these.
/// Afterwards the plan does not follow growth on the host.
///
/// None if the plan omits part of a stand-in because a mask hides it: the host cannot know which drafts those
/// would be. The plan must have no items with dealt tokens. Over ranks, the plan must have been made with
/// HeldSlots::standIns, and only drafts of this cache get a run.
std::optional<DraftTables> makeRoomForDrafts(std::span<const tree::DraftedRequest> requests,
                                             const HeldSlots &slots, Plan &plan);
inline std::optional<DraftTables> makeRoomForDrafts(std::span<const tree::DraftedRequest> requests,
                                                    Plan &plan) {
  return makeRoomForDrafts(requests, HeldSlots::of(requests, {}), plan);
}

/// The arguments that let placeDrafts() write into the plan itself. The caller adds the mask and the
/// addresses of the marks.
abi::DraftArgs draftArgs(const DraftTables &tables, Plan &plan);

/// The errors that non-zero marks stand for (abi::DraftArgs).
support::Error noTreeError(unsigned long long mark);
support::Error unservedError(unsigned long long mark);

} // namespace deft::plan
