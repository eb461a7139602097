#include "runtime/api/Plan.h"

#include "compiler/spec/Names.h"
#include "compiler/support/Log.h"
#include "compiler/support/NvtxRange.h"
#include "runtime/api/Checks.h"
#include "runtime/api/InvariantConfig.h"
#include "runtime/api/Ranks.h"
#include "runtime/api/RunTensors.h"
#include "runtime/api/Sized.h"
#include "runtime/api/StepCapture.h"
#include "runtime/plan/Forms.h"
#include "runtime/plan/RoundedChunk.h"
#include "runtime/plan/report/PlanPage.h"
#include "runtime/program/CpuConfig.h"
#include "runtime/tree/Places.h"

#include <algorithm>
#include <array>

namespace deft::api {

namespace {

constexpr std::pair<std::int32_t, spec::Partition> kPartitions[] = {
#define DEFT_PARTITION_ROW(ID, NAME, NUMBER) {NUMBER, spec::Partition::ID},
    DEFT_PARTITIONS(DEFT_PARTITION_ROW)
#undef DEFT_PARTITION_ROW
};

} // namespace

Result<deft_plan_options> planOptionsOf(const deft_plan_options *given) {
  auto known = readSized("deft_plan_options", given);
  if (known)
    if (auto checked = checkRange("deft_plan_options::partition", known->partition, DEFT_PARTITION_DEFAULT,
                                  static_cast<long long>(std::size(kPartitions)));
        !checked)
      return checked.error();
  return known;
}

config::Config withOptions(config::Config config, const deft_plan_options &options) {
  for (const auto &[number, partition] : kPartitions)
    if (number == options.partition)
      config.partition = partition;
  if (options.chunk_tokens != DEFT_CHUNK_DEFAULT)
    config.chunkTokens = options.chunk_tokens == DEFT_CHUNK_FILL ? 0 : options.chunk_tokens;
  if (options.is_invariant == 0)
    return config;
  // What the options leave open; what they say wrong is the planner's error.
  if (options.partition == DEFT_PARTITION_DEFAULT)
    config.partition = spec::Partition::Node;
  if (config.chunkTokens == 0 && options.chunk_tokens == DEFT_CHUNK_DEFAULT)
    config.chunkTokens = DEFT_INVARIANT_CHUNK;
  return withWidestPhase(std::move(config));
}

Result<std::unique_ptr<deft_plan>> makePlan(const deft_attention &attention, const deft_tree &tree,
                                            const deft_plan_options *given) {
  const auto options = planOptionsOf(given);
  if (!options)
    return options.error();
  if (auto checked = checkThreads("deft_plan_options::workers", options->workers); !checked)
    return checked.error();
  if (options->params)
    if (auto checked = options->params->checkIsOf(*attention.of, "deft_plan_options::params"); !checked)
      return checked.error();
  const spec::Variant &variant = attention.variant();
  const int workers = options->workers > 0 ? options->workers : exec::usableProcessors();
  auto config = program::cpuConfig(variant, workers);
  if (!config)
    return config.error();
  auto made = std::make_unique<deft_plan>();
  const plan::Reach reach = options->params ? options->params->reach() : deft_params(attention).reach();
  made->attention = variant.called();
  made->variantName = variant.name;
  made->pageSize = variant.cache.pageSize;
  made->facts = plan::VariantFacts::of(variant, config::DeviceKind::Cpu, reach);
  made->givesLse = variant.withLse;
  made->whyNotOverRanks = whyNotOverRanks(variant);
  made->options = *options;
  made->options.params = nullptr;
  made->config = withOptions(*config, *options);
  made->workers = workers;
  if (made->isInvariant()) { // which says that the tree has no part in it
    made->planner = plan::Planner({.isInvariant = true});
  } else {
    made->chooser.emplace(attention.of->configs->ofCpu(workers), attention.of->program.sharedVariant(),
                          nullptr, std::move(*config));
    made->chooser->setReach(reach);
  }
  if (auto planned = made->make(tree); !planned)
    return planned.error();
  return made;
}

void Plan::chooseConfig(const deft_tree &tree, config_cache::TreeFeatures features) {
  if (!chooser || isCaptured)
    return;
  // Stand-ins are one level, and what they stand for is some: of the class that its tree would be of.
  constexpr int kDraftLevels = 8;
  int most = 1;
  for (const tree::DraftedRequest &request : tree.drafted())
    most = std::max(most, request.count);
  features.levels += std::min(most, kDraftLevels) - 1;
  const auto treeOf = [&]() -> const tree::KvTree & { return treeToRead(tree); };
  const config_cache::Ruling &ruling = chooser->choose(treeOf, features);
  if (chooser->changes() == changesSeen)
    return;
  changesSeen = chooser->changes();
  config = withOptions(ruling.config(), options);
}

Result<void> Plan::checkReach(const plan::Reach &reach, const std::string &other) const {
  if (facts.reach == reach || (facts.reach.isAll() && !reach.seesPath()))
    return {};
  return usage("the plan leaves out tokens that another mask hides, or this one with other values of its "
               "parameters: " +
                   other + " may see them",
               "make the plan for this attention, with the values that it runs with");
}

Result<void> Plan::checkCurrent(const std::string &what) const {
  if (isCurrent())
    return {};
  support::log({support::LogKind::StalePlan, what + " was refused"});
  return usage("the plan is stale: its tree has changed since it was made", "advance the plan first");
}

Result<void> Plan::checkRanks(const deft_tree &tree) const {
  if (tree.beams() || !tree.tree().ranks())
    return {};
  if (!whyNotOverRanks.empty())
    return usage(whyNotOverRanks + ": its trees must be on one rank");
  return tree::checkHeld(tree.tree());
}

Result<void> Plan::checkDivision(const deft_tree &tree) const {
  return readsSomeNodes() ? division->check(tree) : Result<void>();
}

Result<void> Plan::checkPlaces(const deft_tree &tree) {
  if (options.checks_places == 0 || !tree.drafted().empty()) // stand-ins have no slots of their own
    return {};
  auto checked = tree::checkPlaces(tree.tree());
  if (!checked)
    stamp = nullptr;
  return checked;
}

Result<void> Plan::make(const deft_tree &tree) {
  const support::NvtxRange range("deft plan");
  const support::LoggedSpan making;
  const Begin begun = begin();
  stamp = nullptr;
  if (!tree.beams()) // which are placed
    if (auto placed = tree::checkPlaced(tree.tree()); !placed)
      return placed;
  if (auto checked = checkRanks(tree); !checked)
    return checked;
  if (auto checked = checkDivision(tree); !checked)
    return checked;
  if (auto checked = checkPlaces(tree); !checked)
    return checked;
  if (auto made = makePlan(tree, facts, nullptr); !made)
    return made;
  if (growsOnDevice && drafts.isEmpty())
    if (auto grows = letLeavesGrow(tree); !grows)
      return grows;
  isRefitted = false;
  noteTree(tree, begun);
  making.end(support::LogKind::Plan, [&] { return sentence(); });
  return {};
}

std::string Plan::rule() const {
  return chooser ? std::string(config_cache::ruleName(chooser->ruling().rule())) : "heuristic";
}

std::string Plan::sentence() const {
  const deft_plan_summary made = summary();
  return attention + ": " + std::to_string(queryCount()) + " queries, " + std::to_string(made.items) +
         " items of " + std::to_string(made.tokens_read) + " tokens, " + std::to_string(made.partials) +
         " partials; by " + std::string(spec::toString(lastChoice().partition)) + ", config: " + rule();
}

Result<void> Plan::makePlan(const deft_tree &tree, const plan::VariantFacts &known,
                            const config::Config *fixed) {
  drafts = {};
  needsMask = isOfBeams = false;
  if (tree.beams())
    return makeOfBeams(tree, known, fixed);
  if (!tree.drafted().empty())
    return makeDrafted(tree, known, fixed);
  if (auto checked = checkChunk(tree); !checked)
    return checked;
  if (const int request = tree.requestInPieces(); request >= 0 && known.reach.seesPath())
    return usage(attention + " is bound by `path`, and others share pages with new tokens of request " +
                     std::to_string(request) +
                     ": its queries are in several nodes, and each sees only its own",
                 "give new tokens that see each other their own pages");
  formTree.reset();
  if (readsSomeNodes())
    formTree = plan::treeOfForm(tree.tree(), division->chosen, readsExpanded);
  const plan::TreeView &view = planner.read(treeToRead(tree), known);
  if (!fixed)
    chooseConfig(tree, config_cache::featuresOf(view));
  return planner.makeOfRead(treeToRead(tree), known, fixed ? *fixed : config, workers, plan);
}

Result<void> Plan::checkBeams(const tree::BeamTree &beams) const {
  if (const int own = beams.room().pageSize; own != pageSize)
    return wrong("tree",
                 "has beams in pages of " + std::to_string(own) + " tokens, and " + attention + " has " +
                     (pageSize == 0 ? "no pages" : "pages of " + std::to_string(pageSize)),
                 "kv_cache = paged(page_size = " + std::to_string(own) + ") in the spec");
  if (growsOnDevice)
    return wrong("deft_gpu_plan_options::follows_lengths",
                 "is given, and each step of beams is planned on the host");
  return {};
}

Result<void> Plan::makeOfBeams(const deft_tree &tree, const plan::VariantFacts &known,
                               const config::Config *fixed) {
  const tree::BeamTree &beams = *tree.beams();
  if (auto checked = checkBeams(beams); !checked)
    return checked;
  support::Result<void> made;
  if (known.reach.isAll()) {
    if (!fixed)
      chooseConfig(tree, config_cache::featuresOf(beams));
    if (!beamPlanner)
      beamPlanner.emplace(plan::PlanOptions{.isInvariant = isInvariant()});
    made = beamPlanner->make(beams, known, fixed ? *fixed : config, workers, plan);
    isOfBeams = made.ok();
  } else {
    const plan::TreeView &view = planner.read(tree.tree(), known);
    if (!fixed)
      chooseConfig(tree, config_cache::featuresOf(view));
    made = planner.makeOfRead(tree.tree(), known, fixed ? *fixed : config, workers, plan);
  }
  plan.generation = plan.structureGeneration = beams.generation();
  return made;
}

/// Requests of a batch that share less than whole chunks have paths that are cut where others leave them.
Result<void> Plan::checkChunk(const deft_tree &tree) const {
  const std::optional<int> shared = tree.sharingStep();
  if (!isInvariant() || !shared)
    return {};
  const int chunk = plan::roundedChunk(config.chunkTokens);
  if (chunk <= 0 || *shared % chunk == 0) // a chunk of none is the planner's error
    return {};
  const std::string fitting = "give the batch an invariant chunk of " + std::to_string(chunk);
  if (*shared == 1)
    return usage("an invariant plan needs a batch whose requests share only whole chunks; otherwise a "
                 "request's bits depend on the sharing of its pages",
                 fitting);
  return usage("the batch's requests share multiples of " + std::to_string(*shared) +
                   " tokens, but an invariant plan needs multiples of its chunks: these have " +
                   std::to_string(chunk),
               fitting + ", or the plan chunks whose tokens divide " + std::to_string(*shared));
}

Result<void> Plan::letLeavesGrow(const deft_tree &tree) {
  const auto isStuck = [](const plan::Plan::Leaf &leaf) {
    return leaf.canGrow == 0 && leaf.followBegin < leaf.followEnd;
  };
  if (config.order != config::Order::Mixed || std::none_of(plan.leaves.begin(), plan.leaves.end(), isStuck))
    return {};
  config::Config fromRoot = config;
  fromRoot.order = config::Order::FromRoot;
  return planner.make(treeToRead(tree), facts, fromRoot, workers, plan);
}

Result<void> Plan::makeAs(const plan::Choice &choice, const deft_tree &tree) {
  stamp = nullptr;
  const Begin begun = begin();
  config::Config fixed = config;
  fixed.partition = choice.partition;
  fixed.chunkTokens = choice.chunkTokens;
  if (fixed.order == config::Order::Mixed)
    fixed.order = config::Order::FromRoot;
  if (auto made = makePlan(tree, facts.withoutPages(), &fixed); !made)
    return made;
  isRefitted = true;
  noteTree(tree, begun);
  return {};
}

Plan::Begin Plan::begin() { return capture::isOn() ? Begin(std::chrono::steady_clock::now()) : std::nullopt; }

void Plan::noteTree(const deft_tree &tree, Begin begin) {
  if (readsSomeNodes()) {
    plan.generation = tree.tree().generation(); // those of a copy say nothing of the tree
    plan.structureGeneration = tree.tree().structureGeneration();
    plan::stopGrowth(division->chosen, plan);
    captured = nullptr; // a step's file has one tree and one cache
  } else if (begin) {
    const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - *begin;
    api::noteTree(*this, tree, taken.count());
  }
  stamp = tree.stamp;
  generation = tree.generation();
}

Result<deft_advanced> Plan::advance(const deft_tree &tree) {
  if (isCurrentFor(tree))
    return DEFT_ADVANCED_NOTHING;
  if (auto checked = checkDivision(tree); !checked) {
    stamp = nullptr;
    return checked.error();
  }
  if (auto checked = checkPlaces(tree); !checked)
    return checked.error();
  const Begin begun = begin();
  if (stamp == tree.stamp && !tree.beams() && planner.advance(tree.tree(), plan) == plan::Advance::Done) {
    noteTree(tree, begun);
    return DEFT_ADVANCED_IN_PLACE;
  }
  if (auto made = make(tree); !made)
    return made.error();
  return DEFT_ADVANCED_REMADE;
}

deft_plan_summary Plan::summary() const {
  const plan::PlanSummary own = plan::summarize(plan, facts);
  deft_plan_summary known{};
  known.tokens_read = own.itemTokens;
  known.items = own.items;
  known.direct_items = own.directItems;
  known.dealt_items = own.dealtItems;
  known.partials = own.partialSlots;
  known.merged_queries = own.mergedQueries;
  return known;
}

Result<void> Plan::giveSummary(deft_plan_summary *to) const {
  return writeSized("deft_plan_summary", summary(), to);
}

Result<void> Plan::giveChoice(deft_config_choice **to) const {
  std::string treeClass, file;
  if (chooser) {
    const config_cache::Ruling &ruling = chooser->ruling();
    treeClass = ruling.treeClass.text();
    file = ruling.chosen.path;
  }
  Made<deft_config_choice> made;
  made->size = sizeof(deft_config_choice);
  made->rule = made.text(rule());
  made->tree_class = made.text(treeClass);
  made->file = made.text(file);
  made->why = made.text(why());
  *to = made.release();
  return {};
}

std::string Plan::why() const {
  if (!chooser)
    return "an invariant plan's config does not depend on the tree";
  return chooser->ruling().chosen.why() + (isRefitted ? "; made for the room of a captured graph" : "");
}

config::CostCoefficients Plan::kernelPrices() const {
  return chooser ? chooser->kernelPrices()
                 : config_cache::ofColumns(config::nearestPrices(config::someGpu()).kernels, facts.tensors);
}

Result<plan::PlanReport> Plan::report(const deft_tree &tree, const config::CostCoefficients &prices,
                                      const char *field) const {
  if (!isCurrentFor(tree))
    return wrong(field, "is of another tree, or the tree has changed since", "advance the plan first");
  config::Config shown = config;
  if (isOfBeams)
    shown.partition = lastChoice().partition;
  if (division && readsExpanded)
    return wrong(field, "reads expanded nodes, whose locations are not those of the tree: it has no picture",
                 "show the plan that reads the other nodes");
  auto report = plan::reportPlan(readsSomeNodes() ? plan::treeOfForm(tree.tree(), division->chosen, false)
                                                  : tree.tree(),
                                 facts, shown, prices, workers, {.isInvariant = isInvariant()});
  if (!report)
    return report.error();
  report->treeName = "a tree";
  report->variantName = variantName;
  return std::move(*report);
}

Result<std::string> Plan::picture(const deft_tree &tree, const config::CostCoefficients &prices) const {
  const auto shown = report(tree, prices);
  return shown ? plan::drawPlan(*shown) : Result<std::string>(shown.error());
}

Result<std::string> pageOf(const ShownPlan &shown, const ShownPlan &other) {
  const auto first = shown.plan->report(*shown.tree, shown.prices);
  if (!first)
    return first.error();
  if (!other.plan)
    return plan::planPage(std::array{plan::PagePlan{.report = &*first, .why = shown.plan->why()}});
  if (!other.tree)
    return missing("against_tree");
  const auto second = other.plan->report(*other.tree, other.prices, "against");
  if (!second)
    return second.error();
  return plan::planPage(std::array{plan::PagePlan{.report = &*first, .why = shown.plan->why()},
                                   plan::PagePlan{.report = &*second, .why = other.plan->why()}});
}

} // namespace deft::api

using namespace deft::api;

deft_status deft_plan_make(const deft_attention *attention, const deft_tree *tree,
                           const deft_plan_options *options, deft_plan **plan) {
  return make({{"attention", attention}, {"tree", tree}}, plan,
              [&] { return makePlan(*attention, *tree, options); });
}

void deft_plan_destroy(deft_plan *plan) { delete plan; }

deft_status deft_plan_advance(deft_plan *plan, const deft_tree *tree, deft_advanced *advanced) {
  return call({{"plan", plan}, {"tree", tree}}, [&] { return give(plan->advance(*tree), advanced); });
}

deft_status deft_plan_draft(deft_plan *plan, const deft_draft_mask *mask) {
  return call({{"plan", plan}, {"mask", mask}}, [&]() -> Result<void> {
    const auto known = checkMask(mask, {});
    return known ? plan->draft(*known) : known.error();
  });
}

int32_t deft_plan_is_current(const deft_plan *plan) {
  return ask({"plan", plan}, 0, [&] { return plan->isCurrent(); });
}

int32_t deft_plan_query_count(const deft_plan *plan) {
  return ask({"plan", plan}, 0, [&] { return plan->queryCount(); });
}

deft_status deft_plan_get_summary(const deft_plan *plan, deft_plan_summary *summary) {
  return call({{"plan", plan}, {"summary", summary}}, [&] { return plan->giveSummary(summary); });
}

deft_status deft_plan_get_choice(const deft_plan *plan, deft_config_choice **choice) {
  clear(choice);
  return call({{"plan", plan}, {"choice", choice}}, [&] { return plan->giveChoice(choice); });
}

deft_status deft_plan_get_picture(const deft_plan *plan, const deft_tree *tree, char **svg) {
  return giveText({{"plan", plan}, {"tree", tree}, {"svg", svg}}, svg,
                  [&] { return plan->picture(*tree, plan->config.cost); });
}

deft_status deft_plan_get_page(const deft_plan *plan, const deft_tree *tree, const deft_plan *against,
                               const deft_tree *against_tree, char **html) {
  return giveText({{"plan", plan}, {"tree", tree}, {"html", html}}, html, [&] {
    return pageOf({plan, tree, plan->config.cost},
                  {against, against_tree, against ? against->config.cost : plan->config.cost});
  });
}
