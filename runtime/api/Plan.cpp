#include "runtime/api/PlanImpl.h"

#include "compiler/spec/Names.h"
#include "compiler/support/Log.h"
#include "compiler/support/NvtxRange.h"
#include "runtime/api/AttentionImpl.h"
#include "runtime/api/CheckOptions.h"
#include "runtime/api/InvariantConfig.h"
#include "runtime/api/ParamsImpl.h"
#include "runtime/exec/cpu/Processors.h"
#include "runtime/plan/RoundedChunk.h"
#include "runtime/plan/report/PlanReport.h"
#include "runtime/program/CpuConfig.h"
#include "runtime/tree/Places.h"

#include <algorithm>

namespace deft {

namespace {

spec::Partition partitionOf(Partition partition) {
  switch (partition) {
#define DEFT_PARTITION_CASE(ID, NAME)                                                                        \
  case Partition::ID:                                                                                        \
    return spec::Partition::ID;
    DEFT_PARTITIONS(DEFT_PARTITION_CASE)
#undef DEFT_PARTITION_CASE
  }
  return spec::Partition::Auto;
}

} // namespace

config::Config withOptions(config::Config config, const PlanOptions &options) {
  if (options.partition)
    config.partition = partitionOf(*options.partition);
  if (options.chunkTokens)
    config.chunkTokens = *options.chunkTokens;
  if (!options.invariant)
    return config;
  // What the options leave open; what they say wrong is the planner's error.
  if (!options.partition)
    config.partition = spec::Partition::Node;
  if (config.chunkTokens == 0 && !options.chunkTokens)
    config.chunkTokens = kInvariantChunk;
  return api::withWidestPhase(std::move(config));
}

Plan::Plan(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Plan::Plan(Plan &&) noexcept = default;
Plan &Plan::operator=(Plan &&) noexcept = default;
Plan::~Plan() = default;

Result<Plan> Plan::make(const Attention &attention, const Tree &tree, const PlanOptions &options) {
  if (auto checked = api::checkPartition(options); !checked)
    return checked.error();
  if (auto checked = api::checkThreads("PlanOptions::workers", options.workers); !checked)
    return checked.error();
  return api::guarded([&]() -> Result<Plan> {
    const spec::Variant &variant = attention.impl().variant();
    const int workers = options.workers > 0 ? options.workers : exec::usableProcessors();
    auto config = program::cpuConfig(variant, workers);
    if (!config)
      return api::toPublic(config.error());
    auto impl = std::make_unique<Impl>();
    if (options.params && &options.params->impl().attention.impl() != &attention.impl())
      return api::usage("PlanOptions::params are those of another attention");
    const Params &params = options.params ? *options.params : Params(attention);
    impl->attention = variant.name;
    impl->facts = plan::VariantFacts::of(variant, config::DeviceKind::Cpu, params.impl().reach());
    impl->options = options;
    impl->options.params = nullptr; // theirs, for this call
    impl->config = withOptions(*config, options);
    if (options.invariant) // which says that the tree has no part in it
      impl->planner = plan::Planner({.isInvariant = true});
    else
      impl->chooser.emplace(attention.impl().configs->ofCpu(workers),
                            attention.impl().program.sharedVariant(), nullptr, std::move(*config));
    if (impl->chooser)
      impl->chooser->setReach(impl->facts.reach);
    impl->workers = workers;
    if (auto made = impl->make(tree); !made)
      return made.error();
    return Plan(std::move(impl));
  });
}

void Plan::Impl::chooseConfig(const Tree &tree, const plan::TreeView &view) {
  if (!chooser || isCaptured)
    return;
  // Stand-ins are one level, and what they stand for is some: of the class that its tree would be of.
  constexpr int kDraftLevels = 8;
  config_cache::TreeFeatures features = config_cache::featuresOf(view);
  int most = 1;
  for (const tree::DraftedRequest &request : tree.impl().drafted())
    most = std::max(most, request.count);
  features.levels += std::min(most, kDraftLevels) - 1;
  const config_cache::Ruling &ruling = chooser->choose(tree.impl().tree(), features);
  if (chooser->changes() == changesSeen)
    return;
  changesSeen = chooser->changes();
  config = withOptions(ruling.config(), options);
}

Result<void> Plan::Impl::checkReach(const plan::Reach &reach, const std::string &attention) const {
  if (facts.reach == reach || (facts.reach.isAll() && !reach.seesPath()))
    return {};
  return api::usage("the plan leaves out what another mask hides, or this one with other values of its "
                    "parameters: `" +
                        attention + "` may see it",
                    "make the plan for this attention, with the values that it runs with");
}

ConfigChoice Plan::Impl::choice() const {
  if (!chooser)
    return {"heuristic", "", "", "an invariant plan's config does not depend on the tree"};
  const config_cache::Ruling &ruling = chooser->ruling();
  return {config_cache::ruleName(ruling.rule()), ruling.treeClass.text(), ruling.chosen.path,
          ruling.chosen.why() + (isRefitted ? "; made for the room of a captured graph" : "")};
}

Result<void> Plan::Impl::checkPlaces(const Tree &tree) {
  if (!options.checkPlaces || !tree.impl().drafted().empty()) // stand-ins have no slots of their own
    return {};
  auto checked = tree::checkPlaces(tree.impl().tree());
  if (!checked)
    stamp = nullptr;
  return api::toPublic(std::move(checked));
}

Result<void> Plan::Impl::make(const Tree &tree) {
  const support::NvtxRange range("deft plan");
  const support::LoggedSpan making;
  stamp = nullptr;
  if (auto placed = tree::checkPlaced(tree.impl().tree()); !placed)
    return api::toPublic(std::move(placed));
  if (auto checked = checkPlaces(tree); !checked)
    return checked;
  if (auto made = makePlan(tree, facts, nullptr); !made)
    return made;
  if (growsOnDevice && drafts.isEmpty())
    if (auto grows = letLeavesGrow(tree); !grows)
      return grows;
  isRefitted = false;
  noteTree(tree);
  making.end(support::LogKind::Plan, [&] { return sentence(); });
  return {};
}

std::string Plan::Impl::sentence() const {
  const PlanSummary made = summary();
  return "`" + attention + "`: " + std::to_string(plan.queryCount()) + " queries, " +
         std::to_string(made.items) + " items of " + std::to_string(made.tokensRead) + " tokens, " +
         std::to_string(made.partials) + " partials; by " +
         std::string(spec::toString(planner.lastChoice().partition)) + ", config: " + choice().rule;
}

Result<void> Plan::Impl::makePlan(const Tree &tree, const plan::VariantFacts &known,
                                  const config::Config *fixed) {
  drafts = {};
  needsMask = false;
  if (!tree.impl().drafted().empty())
    return makeDrafted(tree, known, fixed);
  if (auto checked = checkChunk(tree); !checked)
    return checked;
  if (const int request = tree.impl().requestInPieces(); request >= 0 && known.reach.seesPath())
    return api::usage(
        "`" + attention + "` is bound by `path`, and others share pages with new tokens of request " +
            std::to_string(request) + ": its queries are in several nodes, and see theirs alone",
        "give new tokens that see each other pages of their own");
  const plan::TreeView &view = planner.read(tree.impl().tree(), known);
  if (!fixed)
    chooseConfig(tree, view);
  return api::toPublic(planner.makeOfRead(tree.impl().tree(), known, fixed ? *fixed : config, workers, plan));
}

/// Requests of a batch that share less than whole chunks have paths that are cut where others leave them.
Result<void> Plan::Impl::checkChunk(const Tree &tree) const {
  const std::optional<int> shared = tree.impl().sharingStep();
  if (!options.invariant || !shared)
    return {};
  const int chunk = plan::roundedChunk(config.chunkTokens);
  if (chunk <= 0 || *shared % chunk == 0) // a chunk of none is the planner's error
    return {};
  const std::string fitting = "PagedBatchOptions::invariantChunk = " + std::to_string(chunk);
  if (*shared == 1)
    return api::usage("an invariant plan needs a batch whose requests share whole chunks alone, else a "
                      "request's bits depend on who shares its pages",
                      fitting);
  return api::usage("the batch's requests share multiples of " + std::to_string(*shared) +
                        " tokens, which are no whole chunks of an invariant plan: these have " +
                        std::to_string(chunk),
                    fitting + ", or a PlanOptions::chunkTokens that divides " + std::to_string(*shared));
}

Result<void> Plan::Impl::letLeavesGrow(const Tree &tree) {
  const auto isStuck = [](const plan::Plan::Leaf &leaf) {
    return leaf.canGrow == 0 && leaf.followBegin < leaf.followEnd;
  };
  if (config.order != config::Order::Mixed || std::none_of(plan.leaves.begin(), plan.leaves.end(), isStuck))
    return {};
  config::Config fromRoot = config;
  fromRoot.order = config::Order::FromRoot;
  return api::toPublic(planner.make(tree.impl().tree(), facts, fromRoot, workers, plan));
}

Result<void> Plan::Impl::makeAs(const plan::Choice &choice, const Tree &tree) {
  stamp = nullptr;
  config::Config fixed = config;
  fixed.partition = choice.partition;
  fixed.chunkTokens = choice.chunkTokens;
  if (fixed.order == config::Order::Mixed)
    fixed.order = config::Order::FromRoot;
  if (auto made = makePlan(tree, facts.withoutPages(), &fixed); !made)
    return made;
  isRefitted = true;
  noteTree(tree);
  return {};
}

void Plan::Impl::noteTree(const Tree &tree) {
  stamp = tree.impl().stamp;
  generation = tree.impl().tree().generation();
}

Result<Advanced> Plan::Impl::advance(const Tree &tree) {
  if (isCurrentFor(tree))
    return Advanced::Nothing;
  if (auto checked = checkPlaces(tree); !checked)
    return checked.error();
  if (stamp == tree.impl().stamp && planner.advance(tree.impl().tree(), plan) == plan::Advance::Done) {
    noteTree(tree);
    return Advanced::InPlace;
  }
  if (auto made = make(tree); !made)
    return made.error();
  return Advanced::Remade;
}

PlanSummary Plan::Impl::summary() const {
  const plan::PlanSummary own = plan::summarize(plan, facts);
  return {own.items, own.directItems, own.dealtItems, own.itemTokens, own.partialSlots, own.mergedQueries};
}

const config::CostCoefficients &Plan::Impl::kernelPrices() const {
  return chooser ? chooser->kernelPrices() : config::nearestPrices(config::someGpu()).kernels;
}

Result<std::string> Plan::Impl::picture(const Tree &tree, const config::CostCoefficients &prices) const {
  if (!isCurrentFor(tree))
    return api::usage("the plan is of another tree, or the tree has changed since", "advance the plan first");
  auto report = plan::reportPlan(tree.impl().tree(), facts, config, prices, workers,
                                 {.isInvariant = options.invariant});
  if (!report)
    return api::toPublic(report.error());
  report->treeName = "a tree";
  report->variantName = attention;
  return plan::drawPlan(*report);
}

Result<Advanced> Plan::advance(const Tree &tree) {
  return api::guarded([&] { return impl_->advance(tree); });
}

bool Plan::isCurrent() const { return impl_->isCurrent(); }
int Plan::queryCount() const { return impl_->plan.queryCount(); }

PlanSummary Plan::summary() const { return impl_->summary(); }
ConfigChoice Plan::choice() const { return impl_->choice(); }

Result<std::string> Plan::picture(const Tree &tree) const {
  return api::guarded([&] { return impl_->picture(tree, impl_->config.cost); });
}

} // namespace deft
