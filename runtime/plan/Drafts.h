#pragma once

#include "compiler/support/Result.h"
#include "runtime/plan/Plan.h"
#include "runtime/tree/DraftStandIn.h"
#include "templates/deft/draft_abi.h"

#include <optional>
#include <span>
#include <vector>

namespace deft::plan {

/// What a plan with room for drafts is written by, on the host (placeDrafts) or on a device.
struct DraftTables {
  std::vector<abi::DraftRequest> requests; ///< which may gain nothing
  std::vector<abi::DraftItem> items;       ///< by the plan's numbers
  std::vector<abi::DraftPart> parts;
  std::vector<int> queryAt; ///< by caller's index of the first draft and place

  bool isEmpty() const { return requests.empty(); }
};

/// Takes the stand-ins out of a plan of a tree that has them (tree::DraftStandIn), and puts room for a run of
/// each draft in their place, behind the other runs of each item: so many are left out of the items' runs and
/// tokens, until placeDrafts() has been there. The plan then follows nothing that grows on the host.
///
/// None where the plan leaves out some of a stand-in, as it may where a mask hides that from all: which
/// drafts are hidden nobody can know. Items in which tokens are dealt are not for drafts.
std::optional<DraftTables> makeRoomForDrafts(std::span<const tree::DraftedRequest> requests, Plan &plan);

/// The arguments by which placeDrafts() writes into the plan itself. What is given, and where marks go, is
/// left out.
abi::DraftArgs draftArgs(const DraftTables &tables, Plan &plan);

/// What marks say, where they are not 0 (abi::DraftArgs).
support::Error noTreeError(unsigned long long mark);
support::Error unservedError(unsigned long long mark);

} // namespace deft::plan
