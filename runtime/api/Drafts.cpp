#include "compiler/support/Log.h"
#include "runtime/api/Plan.h"
#include "runtime/api/StepCapture.h"
#include "runtime/plan/PlaceDrafts.h"

#include <algorithm>
#include <string>
#include <utility>

namespace deft::api {

/// How far queries are behind their request's tokens only their tree says: what a mask may show any of them
/// is planned, and where that leaves out some of a stand-in, everything.
Result<void> Plan::makeDrafted(const deft_tree &tree, const plan::VariantFacts &known,
                               const config::Config *fixed) {
  if (isInvariant())
    return usage("an invariant plan is not for requests with drafts",
                 "add each draft as a node with a query to a tree of your own");
  if (known.reach.seesPath()) // the mask of drafts says who sees a draft, and nothing else does
    return usage(attention + " is bound by `path`, and a plan with drafts by their tree",
                 "add each draft as a node with a query to a tree of your own");
  const std::vector<tree::DraftedRequest> &drafted = tree.drafted();
  int most = 0;
  for (const tree::DraftedRequest &request : drafted)
    most = std::max(most, request.count);
  plan::VariantFacts own = known;
  own.reach = known.reach.widened(most - 1, most - 1 + plan::Planner::kMostGrowth);
  const auto slots = plan::HeldSlots::of(
      drafted, {growsOnDevice ? plan::Planner::kMostGrowth : 0, tree.tree().ranks(), !own.readsKvPos});
  for (;;) {
    const plan::TreeView &view = planner.read(tree.tree(), own, slots.standIns);
    if (!fixed)
      chooseConfig(tree, config_cache::featuresOf(view));
    config::Config fromRoot = fixed ? *fixed : config;
    if (fromRoot.order == config::Order::Mixed) // nobody knows whose drafts a warp will see
      fromRoot.order = config::Order::FromRoot;
    if (auto made = planner.makeOfRead(tree.tree(), own, fromRoot, workers, plan); !made)
      return made;
    if (auto room = plan::makeRoomForDrafts(drafted, slots, plan)) {
      drafts = std::move(*room);
      needsMask = true;
      return {};
    }
    if (own.reach.isAll())
      return Error{support::ErrorCode::Internal, "the plan leaves out drafts", ""};
    own.reach = {};
  }
}

Result<void> Plan::checkMask(const DraftMask &mask) const {
  if (drafts.isEmpty())
    return usage("the plan has no requests with drafts", "say how many drafts each request has");
  for (const abi::DraftRequest &request : drafts.requests)
    if (request.count > mask.drafts)
      return wrong("deft_draft_mask::bits",
                   "has " + std::to_string(mask.drafts) + " drafts of a request, and request " +
                       std::to_string(request.request) + " has " + std::to_string(request.count));
  if (const int last = drafts.requests.back().request; mask.requests > 0 && last >= mask.requests)
    return usage("the mask is for " + std::to_string(mask.requests) + " requests, and request " +
                 std::to_string(last) + " has drafts");
  return {};
}

Result<void> Plan::draft(const DraftMask &mask) {
  if (auto current = checkCurrent("a mask of drafts for " + attention); !current)
    return current;
  if (auto checked = checkMask(mask); !checked)
    return checked;
  unsigned long long unserved = 0, noTree = 0;
  abi::DraftArgs args = plan::draftArgs(drafts, plan);
  args.bits = mask.bits;
  args.depths = mask.depths;
  args.lengths = mask.lengths;
  args.rows = mask.drafts;
  args.unserved = &unserved;
  args.noTree = &noTree;
  isRedrafted->store(true);
  isRedrafted = std::make_shared<std::atomic<bool>>(false);
  plan::placeDrafts(args);
  needsMask = noTree != 0 || unserved != 0;
  if (noTree != 0)
    return plan::noTreeError(noTree);
  if (unserved != 0)
    return plan::unservedError(unserved);
  return captured ? captured->noteMask(mask) : Result<void>();
}

} // namespace deft::api
