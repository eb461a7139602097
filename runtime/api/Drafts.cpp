#include "compiler/support/Log.h"
#include "runtime/api/CheckOptions.h"
#include "runtime/api/PlanImpl.h"
#include "runtime/plan/PlaceDrafts.h"

#include <algorithm>
#include <string>
#include <utility>

namespace deft {

/// How far queries are behind their request's tokens only their tree says: what a mask may show any of them
/// is planned, and where that leaves out some of a stand-in, everything.
Result<void> Plan::Impl::makeDrafted(const Tree &tree, const plan::VariantFacts &known,
                                     const config::Config *fixed) {
  if (options.invariant)
    return api::usage("an invariant plan is not for requests with drafts",
                      "give each draft's query by a Tree");
  if (known.reach.seesPath()) // who sees a draft is said by the mask of drafts, and by nothing else
    return api::usage("`" + attention + "` is bound by `path`, and a plan with drafts by their tree",
                      "give each draft's query by a Tree");
  const std::vector<tree::DraftedRequest> &drafted = tree.impl().drafted();
  int most = 0;
  for (const tree::DraftedRequest &request : drafted)
    most = std::max(most, request.count);
  plan::VariantFacts own = known;
  own.reach = known.reach.widened(most - 1, most - 1 + plan::Planner::kMostGrowth);
  for (;;) {
    const plan::TreeView &view = planner.read(tree.impl().tree(), own);
    if (!fixed)
      chooseConfig(tree, view);
    config::Config fromRoot = fixed ? *fixed : config;
    if (fromRoot.order == config::Order::Mixed) // nobody knows whose drafts a warp will see
      fromRoot.order = config::Order::FromRoot;
    if (auto made = planner.makeOfRead(tree.impl().tree(), own, fromRoot, workers, plan); !made)
      return api::toPublic(made.error());
    if (auto room = plan::makeRoomForDrafts(drafted, plan)) {
      drafts = std::move(*room);
      needsMask = true;
      return {};
    }
    if (own.reach.isAll())
      return Error{ErrorCode::Internal, "the plan leaves out drafts", ""};
    own.reach = {};
  }
}

Result<void> Plan::Impl::checkMask(const DraftMask &mask) const {
  if (drafts.isEmpty())
    return api::usage("the plan is not one of requests with drafts", "give PagedRequests::drafts");
  if (!mask.bits)
    return api::usage("DraftMask::bits is null");
  for (const abi::DraftRequest &request : drafts.requests)
    if (request.count > mask.drafts)
      return api::usage("DraftMask::drafts is " + std::to_string(mask.drafts) + ", and request " +
                        std::to_string(request.request) + " has " + std::to_string(request.count));
  if (const int last = drafts.requests.back().request; mask.requests > 0 && last >= mask.requests)
    return api::usage("the mask is for " + std::to_string(mask.requests) + " requests, and request " +
                      std::to_string(last) + " has drafts");
  return {};
}

Result<void> Plan::draft(const DraftMask &mask) {
  if (!impl_->isCurrent()) {
    support::log(
        {support::LogKind::StalePlan, "a mask of drafts for `" + impl_->attention + "` was refused"});
    return api::usage("the plan is stale: its tree has changed since it was made",
                      "call Plan::advance(tree) first");
  }
  if (auto checked = impl_->checkMask(mask); !checked)
    return checked;
  return api::guarded([&]() -> Result<void> {
    unsigned long long unserved = 0, noTree = 0;
    abi::DraftArgs args = plan::draftArgs(impl_->drafts, impl_->plan);
    args.bits = mask.bits;
    args.depths = mask.depths;
    args.lengths = mask.lengths;
    args.rows = mask.drafts;
    args.unserved = &unserved;
    args.noTree = &noTree;
    impl_->isRedrafted->store(true);
    impl_->isRedrafted = std::make_shared<std::atomic<bool>>(false);
    plan::placeDrafts(args);
    impl_->needsMask = noTree != 0 || unserved != 0;
    if (noTree != 0)
      return api::toPublic(plan::noTreeError(noTree));
    if (unserved != 0)
      return api::toPublic(plan::unservedError(unserved));
    return {};
  });
}

} // namespace deft
