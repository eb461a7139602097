#include "compiler/support/NvtxRange.h"
#include "runtime/api/Attention.h"
#include "runtime/api/Checks.h"
#include "runtime/api/Plan.h"
#include "runtime/api/RunTensors.h"
#include "runtime/api/Selection.h"
#include "runtime/api/Sized.h"
#include "runtime/api/SizedParamChecks.h"
#include "runtime/api/StepCapture.h"
#include "runtime/exec/FiniteCheck.h"
#include "runtime/exec/cpu/CpuExecutor.h"

#include <deft/c/runtime.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <vector>

using namespace deft;
using namespace deft::api;

struct deft_runtime {
  mutable exec::CpuExecutor executor; ///< its threads take turns at runs
};

namespace {

/// What a run on the host is of.
struct HostRun {
  const deft_runtime *runtime;
  const deft_attention *attention;
  const deft_plan *plan;
  const deft_inputs *inputs;
  const deft_outputs *outputs;
  capture::RunKind kind = capture::RunKind::Full;
  int budget = 0; ///< tokens of a list; 0: nothing is selected

  template <typename Body>
  deft_status call(std::initializer_list<Pointer> needed, Body &&body, DEFT_CALLER) const {
    return api::call(
        {{"runtime", runtime},
         {"attention", attention},
         {"plan", plan},
         {"inputs", inputs},
         {"outputs", outputs}},
        [&]() -> Result<void> {
          const auto checked = checkPointers(needed);
          return checked ? body() : checked;
        },
        function);
  }
};

/// Everything that can be wrong with a run and its plan, before anything is written.
Result<void> checkPlan(const spec::Variant &variant, const Plan &plan) {
  if (auto current = plan.checkCurrent("a run of " + variant.called()); !current)
    return current;
  if (plan.needsMask)
    return usage("the plan does not know yet which drafts see which", "set a mask of drafts first");
  if (plan.facts.ratio != variant.ratio() || plan.facts.kvHeads != variant.kvHeads)
    return usage("the plan is for " + std::to_string(plan.facts.ratio * plan.facts.kvHeads) +
                     " query heads and " + std::to_string(plan.facts.kvHeads) + " kv heads, " +
                     variant.called() + " has " + std::to_string(variant.queryHeads) + " and " +
                     std::to_string(variant.kvHeads),
                 "make one for this attention");
  return {};
}

/// Each page that a run reads is one that the cache has.
Result<void> checkPages(const RunTensors &tensors, const Plan &plan, int pageSize) {
  if (pageSize == 0)
    return {};
  const std::int64_t cachePages = tensors.cachePages.value_or(std::numeric_limits<std::int64_t>::max());
  for (const abi::Run &run : plan.plan.runs)
    for (int page = run.location / pageSize; page * pageSize < run.location + run.tokens; ++page) {
      const int own = tensors.pageTable.entries[page];
      if (own >= cachePages)
        return usage("entry " + std::to_string(page) + " of the page table is " + std::to_string(own) +
                     ", and the cache has " + std::to_string(cachePages) + " pages");
      if (own < 0)
        return usage("the page table has no page for the tokens from " + std::to_string(page * pageSize) +
                     " on: its entry " + std::to_string(page) + " is " + std::to_string(own));
    }
  return {};
}

/// Each slot of a caller's lists is one that the cache has.
Result<void> checkSlots(const RunTensors &tensors, int pageSize) {
  constexpr std::int64_t kMostPages = std::int64_t{1} << 31; // the most that slots can name
  const std::int64_t pages = std::min(tensors.cachePages.value_or(kMostPages), kMostPages);
  const std::int64_t slots = pages * std::max(pageSize, 1);
  const auto found = exec::findWrongSlot(tensors.lists, slots);
  return found ? wrong("lists", found->text(slots),
                       "an entry is page * page_size + the place in the page, or -1 for none")
               : Result<void>();
}

/// Each token that a run reads is one that the cache has, and arrays over tokens have a value for it.
Result<void> checkTokens(const spec::Variant &variant, const RunTensors &tensors, const Plan &plan,
                         const deft_params &params) {
  if (!tensors.lists.slots)
    return checkSizedParams(params, plan.plan, tensors.pageTable.entries);
  std::vector<std::size_t> counts;
  for (const std::optional<exec::ParamValue> &value : params.values)
    counts.push_back(value ? exec::countOf(*value) : 0);
  return checkSizedParams(variant, counts, tensors.cachePages, plan.plan);
}

/// Checks a run and calls `launch(kernel, variant, view of the inputs, view of the outputs, tensors)`.
template <class Launch>
Result<void> checkAndRun(const HostRun &run, const Launch &launch, bool isSparse = false) {
  const support::NvtxRange range("deft run");
  const Attention &attention = *run.attention->of;
  const spec::Variant &variant = attention.variant();
  const Plan &plan = *run.plan;
  if (auto checked = checkPlan(variant, plan); !checked)
    return checked;
  const auto tensors = checkTensors(variant, plan, {}, run.inputs, run.outputs);
  if (!tensors)
    return tensors.error();
  if (auto checked = checkGivenLists(variant, *tensors, isSparse); !checked)
    return checked;
  const int pageSize = variant.cache.pageSize;
  if (auto checked =
          tensors->lists.slots ? checkSlots(*tensors, pageSize) : checkPages(*tensors, plan, pageSize);
      !checked)
    return checked;
  if (!attention.cpuKernel)
    return attention.cpuKernel.error();
  std::optional<deft_params> defaults;
  const deft_params &params =
      tensors->asked.params ? *tensors->asked.params : defaults.emplace(*run.attention);
  if (auto checked = params.checkIsOf(attention); !checked)
    return checked;
  // Else it serves every mask within `tree`, and a run need not ask for this one's.
  if (!plan.facts.reach.isAll() || variant.bound == spec::MaskBound::Path)
    if (auto checked = plan.checkReach(params.reach(), variant.called()); !checked)
      return checked;
  const auto slots = params.slots();
  if (!slots)
    return slots.error();
  if (auto checked = checkTokens(variant, *tensors, plan, params); !checked)
    return checked;

  exec::InputView view;
  view.queryCount = plan.queryCount();
  view.q = static_cast<const std::uint16_t *>(tensors->q);
  view.k = tensors->k;
  view.v = variant.tensors.valueInKey ? tensors->k : tensors->v;
  view.cache = tensors->cache;
  view.qStride = tensors->qStride;
  view.pageSize = pageSize;
  view.pageTable = tensors->pageTable.entries;
  view.params = slots->data();
  const exec::OutputView written{static_cast<std::uint16_t *>(tensors->out), tensors->lse,
                                 tensors->outStride};
  const auto begin =
      plan.captured ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point();
  auto ran = launch(*attention.cpuKernel, variant, view, written, tensors->lists);
  if (ran && plan.captured) {
    const std::chrono::duration<double, std::micro> us = std::chrono::steady_clock::now() - begin;
    captureRun(plan, *run.attention, params, *tensors, run.kind,
               tensors->lists.slots ? tensors->lists.budget : run.budget, us.count());
  }
  if (!ran || tensors->asked.settings.check_finite == 0)
    return ran;
  if (const auto found = exec::findNotFinite(variant, plan.plan, params.reach(), view,
                                             {written.out, written.lse, written.outStride}))
    return *found;
  return {};
}

/// Whether lists of that shape are the attention's.
Result<void> checkLists(const spec::Variant &variant, const deft_selection &selection) {
  if (!variant.select)
    return usage(variant.called() + " selects nothing", "write `select { budget = 4096; }` in the spec");
  if (variant.readsGivenLists())
    return usage(variant.called() + " selects nothing: its lists are by `caller`",
                 "give lists to its sparse runs");
  if (variant.lists() != selection.lists)
    return usage("the selection has " + std::to_string(selection.lists) +
                     (selection.lists == 1 ? " list" : " lists") + " a query, " + variant.called() + " has " +
                     std::to_string(variant.lists()),
                 "make one for this attention");
  return {};
}

/// Whether the lists are of the tree that the plan is of.
Result<void> checkFresh(const deft_selection &selection, const Plan &plan) {
  constexpr char kHint[] = "run this attention selecting first";
  if (!selection.stamp)
    return usage("the selection is empty: no run has selected yet", kHint);
  if (selection.stamp != plan.stamp || selection.generation != plan.generation)
    return usage("the selection is stale: the tree has changed since it was made", kHint);
  if (*selection.isRedrafted)
    return usage("the selection is stale: another mask of drafts has come since it was made", kHint);
  return {};
}

int budgetOf(const deft_selection *selection) { return selection ? selection->budget : 0; }

} // namespace

deft_status deft_runtime_make(const deft_runtime_options *options, deft_runtime **runtime) {
  return make({}, runtime, [&]() -> Result<std::unique_ptr<deft_runtime>> {
    const auto known = readSized("deft_runtime_options", options);
    if (!known)
      return known.error();
    if (auto checked = checkThreads("deft_runtime_options::threads", known->threads); !checked)
      return checked.error();
    auto executor = exec::CpuExecutor::create(known->threads > 0 ? known->threads : exec::usableProcessors());
    if (!executor)
      return executor.error();
    return std::make_unique<deft_runtime>(std::move(*executor));
  });
}

void deft_runtime_destroy(deft_runtime *runtime) { delete runtime; }

int32_t deft_runtime_threads(const deft_runtime *runtime) {
  return ask({"runtime", runtime}, 0, [&] { return runtime->executor.threads(); });
}

deft_status deft_runtime_run(const deft_runtime *runtime, const deft_attention *attention,
                             const deft_plan *plan, const deft_inputs *inputs, const deft_outputs *outputs) {
  const HostRun run{runtime, attention, plan, inputs, outputs};
  return run.call({}, [&] {
    return checkAndRun(
        run, [&](const auto &kernel, const auto &variant, const auto &in, const auto &out, const auto &) {
          return runtime->executor.run(kernel, variant, plan->plan, in, out);
        });
  });
}

deft_status deft_runtime_run_selecting(const deft_runtime *runtime, const deft_attention *attention,
                                       const deft_plan *plan, deft_selection *selection,
                                       const deft_inputs *inputs, const deft_outputs *outputs) {
  const HostRun run{
      runtime, attention, plan, inputs, outputs, capture::RunKind::Selecting, budgetOf(selection)};
  return run.call({{"selection", selection}}, [&]() -> Result<void> {
    if (auto checked = checkLists(attention->variant(), *selection); !checked)
      return checked;
    const auto launch = [&](const auto &kernel, const auto &variant, const auto &in, const auto &out,
                            const auto &) {
      selection->stamp = nullptr;
      return runtime->executor.runSelecting(kernel, variant, plan->plan, in, out, selection->budget,
                                            selection->chosen, selection->paths);
    };
    if (auto ran = checkAndRun(run, launch); !ran)
      return ran;
    selection->stamp = plan->stamp;
    selection->generation = plan->generation;
    selection->isRedrafted = plan->isRedrafted;
    return {};
  });
}

deft_status deft_runtime_run_sparse(const deft_runtime *runtime, const deft_attention *attention,
                                    const deft_plan *plan, const deft_selection *selection,
                                    const deft_inputs *inputs, const deft_outputs *outputs) {
  const HostRun run{runtime, attention, plan, inputs, outputs, capture::RunKind::Sparse, budgetOf(selection)};
  return run.call({}, [&]() -> Result<void> {
    const bool isGiven = attention->variant().readsGivenLists();
    if (isGiven && selection)
      return wrong("selection",
                   "is given, and " + attention->variant().called() + " reads lists of its caller",
                   "leave it null, and set deft_inputs::lists");
    if (!isGiven) {
      if (auto there = checkPointers({{"selection", selection}}); !there)
        return there;
      if (auto checked = checkLists(attention->variant(), *selection); !checked)
        return checked;
      if (auto fresh = checkFresh(*selection, *plan); !fresh)
        return fresh;
    }
    const auto launch = [&](const auto &kernel, const auto &variant, const auto &in, const auto &out,
                            const exec::GivenLists &lists) {
      return isGiven
                 ? runtime->executor.runSparse(kernel, variant, lists, plan->plan, in, out)
                 : runtime->executor.runSparse(kernel, variant, selection->chosen, selection->paths, in, out);
    };
    return checkAndRun(run, launch, /*isSparse=*/true);
  });
}

deft_status deft_selection_make(const deft_attention *attention, int32_t budget, deft_selection **selection) {
  return make({{"attention", attention}}, selection, [&]() -> Result<std::unique_ptr<deft_selection>> {
    const spec::Variant &variant = attention->variant();
    const int chosen = budget == 0 && variant.select ? variant.select->defaultBudget() : budget;
    if (auto checked = exec::checkBudget(variant, chosen); !checked)
      return checked.error();
    if (variant.readsGivenLists())
      return usage(variant.called() + " selects nothing: its lists are by `caller`",
                   "give lists to its sparse runs");
    auto made = std::make_unique<deft_selection>();
    made->budget = chosen;
    made->lists = variant.lists();
    return made;
  });
}

void deft_selection_destroy(deft_selection *selection) { delete selection; }

deft_status deft_selection_get(const deft_selection *selection, deft_selection_view *view) {
  return call({{"selection", selection}, {"view", view}}, [&] {
    deft_selection_view known{};
    known.positions = selection->chosen.positions.data();
    known.counts = selection->chosen.counts.data();
    known.queries = selection->chosen.queries;
    known.lists = selection->lists;
    known.budget = selection->budget;
    return writeSized("deft_selection_view", known, view);
  });
}
