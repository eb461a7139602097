#include "runtime/api/GpuPlan.h"

#include "compiler/kernels/Legality.h"
#include "compiler/support/NvtxRange.h"
#include "runtime/api/Checks.h"
#include "runtime/api/GpuCapture.h"
#include "runtime/api/Ranks.h"
#include "runtime/api/RunTensors.h"
#include "runtime/api/Selection.h"
#include "runtime/api/SequenceTree.h"
#include "runtime/api/Sized.h"
#include "runtime/api/SizedParamChecks.h"
#include "runtime/exec/cuda/CudaFiniteCheck.h"

#include <deft/c/capture.h>

#include <algorithm>
#include <limits>

using namespace deft;
using namespace deft::api;

namespace {

/// Each tree gets the tuned config of its class, as far as the loaded kernels can run it.
void followTrees(const deft_gpu_attention &attention, Plan &host) {
  const device::DeviceFacts &facts = attention.gpu.device->facts();
  const Attention &of = *attention.attention.of;
  const config::Config &loaded = attention.kernels->config();
  host.chooser.emplace(of.configs->of(config_cache::DeviceKey::ofGpu(facts)), of.program.sharedVariant(),
                       target::targetForDevice(facts.major, facts.minor), loaded);
  host.chooser->setReach(attention.reach);
  host.chooser->pinKernels(loaded);
}

/// With tables for all drafts that the rest of the room may have: a request has a query at least, and an item
/// reads drafts of some of them. Over ranks, a request also has bits for the tokens that it may gain.
exec::PlanRoom withDraftTables(exec::PlanRoom room, bool isOverRanks) {
  constexpr int kMostWords = plan::Planner::kMostGrowth / 32 + 1; // of a request, for each of its drafts
  if (isOverRanks)
    room.heldWords = std::max(room.heldWords, kMostWords * room.queries);
  room.draftRequests = std::max(room.draftRequests, room.queries);
  room.draftItems = std::max(room.draftItems, room.allItems());
  room.draftParts = std::max(room.draftParts, room.allItems() + room.queries);
  return room;
}

/// Who looks at a result waits for it, and a capture has none.
Result<void> checkNotCaptured(const device::Device &device, deft_gpu_stream stream) {
  const device::Device::Current current(device);
  const auto capturing = device.isCapturing(streamOf(stream));
  if (!capturing)
    return capturing.error();
  if (*capturing)
    return usage("a run that checks for NaN and infinity cannot be captured: it waits for its result",
                 "check a run outside of the graph");
  return {};
}

/// Everything that can be wrong with a run but its plan, before anything is enqueued.
Result<exec::CudaPointers> pointersOf(const deft_gpu_plan &plan, const deft_gpu_attention &attention,
                                      const RunTensors &tensors) {
  const spec::Variant &variant = attention.variant();
  const Plan &host = plan.host;
  if (tensors.asked.params)
    return wrong("params", "are given, but on a GPU they belong to the attention",
                 "load the attention with them, or make another one with other values");
  if (!attention.params)
    return attention.params.error();
  if (auto checked = host.checkReach(attention.reach, variant.called()); !checked)
    return checked.error();
  if (host.isInvariant()) // another layer's kernels may have been loaded for other plans
    for (const config::PhaseConfig &phase : attention.kernels->config().phases)
      if (auto checked = kernels::checkInvariant(variant.tensors, phase); !checked)
        return usage(variant.called() + ": " + checked.error().message, "load it for invariant plans");
  if (plan.checksPages && !tensors.cachePages)
    return wrong("k", "has an unknown number of pages, but the plan checks pages",
                 "give its first dimension, or make a plan without checks_pages");
  const auto &params = *attention.params;
  if (auto checked = checkSizedParams(variant, params->counts(), tensors.cachePages, host.plan); !checked)
    return checked.error();
  constexpr std::int64_t kMostPages =
      std::numeric_limits<int>::max(); // of which entries can name all but one
  exec::CudaPointers pointers;
  const std::int64_t known = variant.cache.isPaged() ? 0 : host.plan.tableTokens; // where nobody says it
  pointers.cachePages = static_cast<int>(std::min(tensors.cachePages.value_or(known), kMostPages));
  pointers.q = tensors.q;
  pointers.k = tensors.k;
  pointers.v = tensors.v;
  pointers.pageTable = tensors.pageTable.entries;
  pointers.lists = tensors.lists.slots;
  pointers.pages = host.tablePages(variant.cache.pageSize);
  pointers.cache = tensors.cache;
  pointers.qStride = tensors.qStride;
  pointers.outStride = tensors.outStride;
  pointers.out = tensors.out;
  pointers.lse = tensors.lse;
  pointers.params = params.get();
  return pointers;
}

struct KindOfRun {
  capture::RunKind kind;
  support::Result<void> (exec::CudaPlan::*launch)(const exec::CudaKernels &, const exec::CudaPointers &,
                                                  device::cu::Stream);
};
constexpr KindOfRun kFull{capture::RunKind::Full, &exec::CudaPlan::run};
constexpr KindOfRun kSelecting{capture::RunKind::Selecting, &exec::CudaPlan::runSelecting};
constexpr KindOfRun kSparse{capture::RunKind::Sparse, &exec::CudaPlan::runSparse};

deft_status runAs(const KindOfRun &run, deft_gpu_plan *plan, const deft_gpu_attention *attention,
                  const deft_inputs *inputs, const deft_outputs *outputs, deft_gpu_stream stream,
                  DEFT_CALLER) {
  const auto runs = [&]() -> Result<void> {
    const support::NvtxRange range("deft run");
    if (auto fresh = plan->device->checkFresh(*attention->kernels); !fresh)
      return fresh;
    const RunDevice runDevice{.isGpu = true, .gpu = attention->gpu.index()};
    const auto tensors = checkTensors(attention->variant(), plan->host, runDevice, inputs, outputs);
    if (!tensors)
      return tensors.error();
    if (auto checked = checkGivenLists(attention->variant(), *tensors, run.kind == capture::RunKind::Sparse);
        !checked)
      return checked;
    if (const int budget = plan->device->room().budget;
        tensors->lists.slots && budget > 0 && tensors->lists.budget != budget)
      return wrong("lists", "has " + std::to_string(tensors->lists.budget) +
                                " slots a query, and the plan's budget is " + std::to_string(budget));
    const auto pointers = pointersOf(*plan, *attention, *tensors);
    if (!pointers)
      return pointers.error();
    const device::Device &device = *attention->gpu.device;
    if (tensors->asked.settings.check_finite != 0)
      if (auto checked = checkNotCaptured(device, stream); !checked)
        return checked;
    std::optional<GpuRunCapture> captured;
    if (plan->host.captured)
      captured.emplace(*plan, *attention, *tensors, run.kind, stream);
    Result<void> ran = (*plan->device.*run.launch)(*attention->kernels, *pointers, streamOf(stream));
    if (ran && captured)
      captured->finish();
    if (ran && tensors->asked.settings.check_finite != 0)
      ran = exec::checkFinite(device, attention->variant(), plan->host.plan, attention->reach, *pointers,
                              streamOf(stream));
    return ran;
  };
  return call({{"plan", plan}, {"attention", attention}, {"inputs", inputs}, {"outputs", outputs}}, runs,
              function);
}

} // namespace

Result<void> deft_gpu_plan::makeDraftTables() {
  const exec::PlanRoom &room = device->room();
  const bool isOverRanks = !host.drafts.held.empty();
  const bool areThere = room.draftRequests > 0 && (room.heldWords > 0 || !isOverRanks);
  if (host.drafts.isEmpty() || areThere || !isReserved || device->isFixed())
    return {};
  return device->setRoom(withDraftTables(room, isOverRanks));
}

Result<void> deft_gpu_plan::take() {
  if (followed != host.stamp) {
    unfollow();
    device->forget(); // generations of two trees say nothing of each other
    followed = host.stamp;
    followed->follow(device->watch()->treeGeneration());
  }
  if (growth)
    for (std::size_t r = 0; r < host.drafts.requests.size(); ++r) {
      abi::DraftRequest &request = host.drafts.requests[r];
      request.mostGain = std::min(request.mostGain, growth->slackAt(host.drafts.firstSlots[r]));
    }
  auto written = makeDraftTables();
  if (written)
    written = device->write(host.plan, host.drafts);
  if (!written)
    host.stamp = nullptr; // it is on no device, so it is of no tree
  else
    taken = host.lastChoice();
  return written;
}

Result<deft_advanced> deft_gpu_plan::advance(const deft_tree &tree) {
  if (host.isCurrentFor(tree))
    return DEFT_ADVANCED_NOTHING;
  host.isCaptured = device->isFixed();
  device->lendRoom(host.plan.runs);
  auto advanced = host.advance(tree);
  if (!advanced)
    return advanced;
  auto took = take();
  // The room that a graph has may be for fewer runs, or that of another cut. In path order, or as it was
  // then, the tree may still fit.
  if (!took && host.isCaptured) {
    const plan::Choice chosen = host.lastChoice();
    const bool hasMoreRuns = host.config.order == config::Order::Mixed || host.facts.pageSize > 0;
    if (hasMoreRuns && host.makeAs(chosen, tree))
      took = take();
    if (!took && chosen != taken && host.makeAs(taken, tree))
      took = take();
    if (!took && !host.isInvariant() && host.makeAs(kPlanOfLeastRoom, tree))
      took = take();
  }
  if (!took)
    return took.error();
  return advanced;
}

Result<void> deft_gpu_plan::reserve(const deft_gpu_room &given) {
  constexpr int kMost = 1 << 28; // of any: more than a device's memory
  for (const auto &[name, value] :
       {std::pair("queries", given.queries), std::pair("items", given.items), std::pair("runs", given.runs),
        std::pair("partials", given.partials), std::pair("positions", given.positions),
        std::pair("stretches", given.stretches)})
    if (auto checked = checkRange(std::string("deft_gpu_room::") + name, value, 0, kMost); !checked)
      return checked;
  if (device->isFixed())
    return usage("a captured graph has fixed the plan's room", "make another plan, and capture again");
  exec::PlanRoom larger = device->room();
  larger.growTo(roomOf(given, larger.items.size()));
  isReserved = true;
  if (larger.draftRequests > 0)
    larger = withDraftTables(larger, larger.heldWords > 0);
  if (auto set = device->setRoom(larger); !set) {
    if (!device->hasPlan()) // memory could not be had: advance() makes it anew
      host.stamp = nullptr;
    return set;
  }
  return host.isCurrent() ? take() : Result<void>();
}

deft_gpu_room deft_gpu_plan::room() const {
  const exec::PlanRoom &room = device->room();
  const auto fewest = std::min_element(room.items.begin(), room.items.end());
  deft_gpu_room known{};
  known.queries = room.queries;
  known.items = fewest == room.items.end() ? 0 : *fewest;
  known.runs = room.runs;
  known.partials = room.partialSlots;
  known.positions = room.positions;
  known.stretches = room.stretches;
  return known;
}

namespace deft::api {

Result<GpuPlanOptions> gpuPlanOptionsOf(const deft_gpu_plan_options *given, const spec::Variant &variant) {
  const auto own = readSized("deft_gpu_plan_options", given);
  if (!own)
    return own.error();
  const auto plan = planOptionsOf(own->plan);
  if (!plan)
    return plan.error();
  if (auto checked = checkRange("deft_gpu_plan_options::runs_ahead", own->runs_ahead, 0,
                                std::numeric_limits<int>::max());
      !checked)
    return checked.error();
  if (auto checked = checkRange("deft_gpu_plan_options::slack", own->slack, 0, plan::Planner::kMostGrowth);
      !checked)
    return checked.error();
  if (own->slack > 0 && own->follows_lengths == 0)
    return wrong("deft_gpu_plan_options::slack", "is given, but the plan does not follow lengths",
                 "set follows_lengths as well");
  if (own->budget != 0)
    if (auto checked = exec::checkBudget(variant, own->budget); !checked)
      return checked.error();
  if (auto checked = checkRange("deft_gpu_plan_options::list_overlap", own->list_overlap, 0, 100,
                                "in percent of a list");
      !checked)
    return checked.error();
  if (own->list_overlap > 0 && !variant.readsGivenLists())
    return wrong("deft_gpu_plan_options::list_overlap",
                 "is given, but " + variant.called() + " has no lists by `caller`", "leave it 0");
  return GpuPlanOptions{*plan, *own};
}

Result<std::unique_ptr<deft_gpu_plan>> makeGpuPlan(const deft_gpu_attention &attention, const deft_tree &tree,
                                                   const deft_gpu_plan_options *given) {
  const auto &kernels = attention.kernels;
  const spec::Variant &variant = kernels->variant();
  const auto options = gpuPlanOptionsOf(given, variant);
  if (!options)
    return options.error();
  const bool followsLengths = options->own.follows_lengths != 0;
  exec::CudaPlanOptions onDevice;
  onDevice.isWatched = true;
  onDevice.freeRuns = options->own.runs_ahead;
  onDevice.checksPages = options->own.checks_pages != 0;
  onDevice.budget = options->own.budget;
  onDevice.listOverlap = options->listOverlap();
  onDevice.isInvariant = options->isInvariant();
  if (followsLengths)
    onDevice.growth = {.slack = options->own.slack, .pageSize = variant.cache.pageSize};
  auto device = exec::CudaPlan::create(kernels, onDevice);
  if (!device)
    return device.error();
  auto made = std::make_unique<deft_gpu_plan>(attention, std::move(*device));
  made->growth = onDevice.growth;
  made->checksPages = onDevice.checksPages;
  Plan &host = made->host;
  host.attention = variant.called();
  host.variantName = variant.name;
  host.pageSize = variant.cache.pageSize;
  host.facts = plan::VariantFacts::of(variant, config::DeviceKind::Gpu, attention.reach);
  host.givesLse = variant.withLse;
  host.whyNotOverRanks = whyNotOverRanks(variant);
  host.options = options->plan;
  host.options.params = nullptr;
  host.config = withOptions(kernels->config(), options->plan);
  if (host.config.phases.size() != kernels->phases())
    return usage("the attention was loaded with " + std::to_string(kernels->phases()) +
                     " kernels, and an invariant plan needs one",
                 "load it for invariant plans");
  if (host.isInvariant())
    host.planner = plan::Planner({.isInvariant = true});
  else
    followTrees(attention, host);
  host.workers = kernels->blocksAtOnce();
  host.growsOnDevice = followsLengths;
  if (auto planned = host.make(tree); !planned)
    return planned.error();
  if (auto taken = made->take(); !taken)
    return taken.error();
  return made;
}

} // namespace deft::api

deft_status deft_gpu_plan_make(const deft_gpu_attention *attention, const deft_tree *tree,
                               const deft_gpu_plan_options *options, deft_gpu_plan **plan) {
  return make({{"attention", attention}, {"tree", tree}}, plan,
              [&] { return makeGpuPlan(*attention, *tree, options); });
}

void deft_gpu_plan_destroy(deft_gpu_plan *plan) { delete plan; }

deft_status deft_gpu_plan_advance(deft_gpu_plan *plan, const deft_tree *tree, deft_advanced *advanced) {
  return call({{"plan", plan}, {"tree", tree}}, [&] { return give(plan->advance(*tree), advanced); });
}

deft_status deft_gpu_plan_upload(deft_gpu_plan *plan, deft_gpu_stream stream) {
  return call({{"plan", plan}}, [&] { return uploadPlan(*plan, stream); });
}

deft_status deft_gpu_plan_follow(deft_gpu_plan *plan, const deft_tensor *lengths, deft_gpu_stream stream) {
  return call({{"plan", plan}, {"lengths", lengths}}, [&]() -> Result<void> {
    const auto known = checkLengths(lengths, plan->host.queryCount(), plan->runDevice());
    if (known && plan->host.captured)
      plan->host.captured->noteLengthsOnDevice(*known);
    return known ? Result<void>(plan->device->follow(*known, streamOf(stream))) : known.error();
  });
}

deft_status deft_gpu_plan_draft(deft_gpu_plan *plan, const deft_draft_mask *mask, deft_gpu_stream stream) {
  return call({{"plan", plan}, {"mask", mask}}, [&]() -> Result<void> {
    const auto known = checkMask(mask, plan->runDevice());
    if (!known)
      return known.error();
    if (auto checked = plan->host.checkMask(*known); !checked)
      return checked;
    if (known->lengths && !plan->growth)
      return wrong("deft_draft_mask::lengths", "is given, but the plan does not follow lengths",
                   "let the plan follow lengths");
    if (plan->host.captured)
      plan->host.captured->noteMaskOnDevice(*known);
    return plan->device->draft({known->bits, known->depths, known->lengths, known->drafts}, streamOf(stream));
  });
}

deft_status deft_gpu_plan_run(deft_gpu_plan *plan, const deft_gpu_attention *attention,
                              const deft_inputs *inputs, const deft_outputs *outputs,
                              deft_gpu_stream stream) {
  return runAs(kFull, plan, attention, inputs, outputs, stream);
}

deft_status deft_gpu_plan_run_selecting(deft_gpu_plan *plan, const deft_gpu_attention *attention,
                                        const deft_inputs *inputs, const deft_outputs *outputs,
                                        deft_gpu_stream stream) {
  return runAs(kSelecting, plan, attention, inputs, outputs, stream);
}

deft_status deft_gpu_plan_run_sparse(deft_gpu_plan *plan, const deft_gpu_attention *attention,
                                     const deft_inputs *inputs, const deft_outputs *outputs,
                                     deft_gpu_stream stream) {
  return runAs(kSparse, plan, attention, inputs, outputs, stream);
}

deft_status deft_gpu_plan_read_lists(const deft_gpu_plan *plan, deft_selection *selection,
                                     deft_gpu_stream stream) {
  return call({{"plan", plan}, {"selection", selection}}, [&]() -> Result<void> {
    const int budget = plan->device->room().budget, lists = plan->attention.variant().lists();
    if (selection->budget != budget || selection->lists != lists)
      return usage("the selection has " + std::to_string(selection->lists) + " lists a query of " +
                       std::to_string(selection->budget) + " tokens, the plan " + std::to_string(lists) +
                       " of " + std::to_string(budget),
                   "make it for this attention and the plan's budget");
    selection->stamp = nullptr;
    return plan->device->readLists(selection->chosen, streamOf(stream));
  });
}

deft_status deft_gpu_plan_check_replays(deft_gpu_plan *plan) {
  return call({{"plan", plan}}, [&] { return plan->device->checkReplays(); });
}

deft_status deft_gpu_plan_capture_replay(deft_gpu_plan *plan, deft_gpu_stream stream) {
  return call({{"plan", plan}}, [&] { return captureReplay(*plan, stream); });
}

deft_status deft_gpu_plan_reserve(deft_gpu_plan *plan, const deft_gpu_room *room) {
  return call({{"plan", plan}, {"room", room}}, [&]() -> Result<void> {
    const auto known = readSized("deft_gpu_room", room);
    return known ? plan->reserve(*known) : known.error();
  });
}

deft_status deft_gpu_plan_get_room(const deft_gpu_plan *plan, deft_gpu_room *room) {
  return call({{"plan", plan}, {"room", room}},
              [&] { return writeSized("deft_gpu_room", plan->room(), room); });
}

int32_t deft_gpu_plan_is_current(const deft_gpu_plan *plan) {
  return ask({"plan", plan}, 0, [&] { return plan->host.isCurrent(); });
}

int32_t deft_gpu_plan_query_count(const deft_gpu_plan *plan) {
  return ask({"plan", plan}, 0, [&] { return plan->host.queryCount(); });
}

deft_status deft_gpu_plan_get_summary(const deft_gpu_plan *plan, deft_plan_summary *summary) {
  return call({{"plan", plan}, {"summary", summary}}, [&] { return plan->host.giveSummary(summary); });
}

deft_status deft_gpu_plan_get_choice(const deft_gpu_plan *plan, deft_config_choice **choice) {
  clear(choice);
  return call({{"plan", plan}, {"choice", choice}}, [&] { return plan->host.giveChoice(choice); });
}

deft_status deft_gpu_plan_get_picture(const deft_gpu_plan *plan, const deft_tree *tree, char **svg) {
  return giveText({{"plan", plan}, {"tree", tree}, {"svg", svg}}, svg,
                  [&] { return plan->host.picture(*tree, plan->host.kernelPrices()); });
}

deft_status deft_gpu_plan_get_page(const deft_gpu_plan *plan, const deft_tree *tree,
                                   const deft_gpu_plan *against, const deft_tree *against_tree, char **html) {
  return giveText({{"plan", plan}, {"tree", tree}, {"html", html}}, html, [&] {
    return pageOf({&plan->host, tree, plan->host.kernelPrices()},
                  {against ? &against->host : nullptr, against_tree,
                   against ? against->host.kernelPrices() : plan->host.kernelPrices()});
  });
}
