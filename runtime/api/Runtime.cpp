#include "compiler/support/Log.h"
#include "compiler/support/NvtxRange.h"
#include "runtime/api/AttentionImpl.h"
#include "runtime/api/CacheLayouts.h"
#include "runtime/api/CheckOptions.h"
#include "runtime/api/ParamsImpl.h"
#include "runtime/api/PlanImpl.h"
#include "runtime/api/SelectionImpl.h"
#include "runtime/api/SizedParamChecks.h"
#include "runtime/exec/FiniteCheck.h"
#include "runtime/exec/Inputs.h"
#include "runtime/exec/cpu/CpuExecutor.h"
#include "runtime/exec/cpu/Processors.h"

#include <deft/runtime.hpp>

#include <limits>

namespace deft {

using api::usage;

struct Runtime::Impl {
  exec::CpuExecutor executor;
};

namespace {

/// Everything that can be wrong with a run, before anything is written.
Result<void> checkRun(const Attention &attention, const Plan::Impl &plan, const Inputs &inputs,
                      const Outputs &outputs) {
  const spec::Variant &variant = attention.impl().variant();
  if (!plan.isCurrent()) {
    support::log({support::LogKind::StalePlan, "a run of `" + variant.name + "` was refused"});
    return usage("the plan is stale: its tree has changed since it was made",
                 "call Plan::advance(tree) first");
  }
  if (plan.needsMask)
    return usage("the plan does not know yet which drafts see which", "call Plan::draft(mask) first");
  if (plan.facts.ratio != variant.ratio() || plan.facts.kvHeads != variant.kvHeads)
    return usage("the plan is for " + std::to_string(plan.facts.ratio * plan.facts.kvHeads) +
                     " query heads and " + std::to_string(plan.facts.kvHeads) + " kv heads, `" +
                     variant.name + "` has " + std::to_string(variant.queryHeads) + " and " +
                     std::to_string(variant.kvHeads),
                 "make one for this attention");
  if (outputs.lse && !variant.withLse)
    return usage("`" + variant.name + "` gives no lse",
                 "write `output = ... with lse` in the spec, or leave Outputs::lse null");
  if (plan.plan.queryCount() > 0 && (!inputs.q || !outputs.out))
    return usage(std::string(inputs.q ? "Outputs::out" : "Inputs::q") + " is null");
  for (const auto &strides : {inputs.strides, inputs.vStrides})
    if (auto checked = api::checkStrides(strides); !checked)
      return checked;
  if (auto checked =
          api::checkRowStride("Inputs::qStride", inputs.qStride, attention.q(), attention.queryHeads());
      !checked)
    return checked;
  if (auto checked = api::checkRowStride("Outputs::outStride", outputs.outStride, attention.out(),
                                         attention.queryHeads());
      !checked)
    return checked;
  if (auto checked = api::checkCachePages("Inputs::cachePages", inputs.cachePages, attention.pageSize(),
                                          plan.plan.tableTokens);
      !checked)
    return checked;
  if (plan.plan.tableTokens == 0)
    return {};
  if (!inputs.k || (!inputs.v && !variant.tensors.valueInKey))
    return usage(std::string(inputs.k ? "Inputs::v" : "Inputs::k") + " is null");
  if (const int pageSize = attention.pageSize(); pageSize > 0) {
    const int pages = plan.tablePages(pageSize);
    if (inputs.pageTable.size() < static_cast<std::size_t>(pages))
      return usage("the page table has " + std::to_string(inputs.pageTable.size()) +
                   " pages, the tree's tokens lie in the first " + std::to_string(pages));
    const std::int64_t cachePages = inputs.cachePages.value_or(std::numeric_limits<std::int64_t>::max());
    for (const abi::Run &run : plan.plan.runs)
      for (int page = run.location / pageSize; page * pageSize < run.location + run.tokens; ++page) {
        const int own = inputs.pageTable[static_cast<std::size_t>(page)];
        if (own >= cachePages)
          return usage("entry " + std::to_string(page) + " of the page table is " + std::to_string(own) +
                       ", and the cache has " + std::to_string(cachePages) + " pages");
        if (own < 0)
          return usage("the page table has no page for the tokens from " + std::to_string(page * pageSize) +
                       " on: its entry " + std::to_string(page) + " is " + std::to_string(own));
      }
  }
  return {};
}

/// Checks a run and calls `launch(kernel, variant, view of the inputs, view of the outputs)`.
template <class Launch>
Result<void> checkAndRun(const Attention &attention, const Plan::Impl &plan, const Inputs &inputs,
                         const Outputs &outputs, const Launch &launch) {
  const support::NvtxRange range("deft run");
  if (auto checked = checkRun(attention, plan, inputs, outputs); !checked)
    return checked;
  if (const auto &kernel = attention.impl().cpuKernel; !kernel)
    return api::toPublic(kernel.error());
  std::optional<Params> defaults;
  const Params::Impl &params = inputs.params ? inputs.params->impl() : defaults.emplace(attention).impl();
  if (&params.attention.impl() != &attention.impl())
    return usage("the parameters are those of another attention");
  // Else it serves every mask within `tree`, and a run need not ask for this one's.
  if (!plan.facts.reach.isAll() || attention.impl().variant().bound == spec::MaskBound::Path)
    if (auto checked = plan.checkReach(params.reach(), attention.name()); !checked)
      return checked;
  const auto slots = params.slots();
  if (!slots)
    return slots.error();
  if (auto checked = api::checkSizedParams(params, plan.plan, inputs.pageTable); !checked)
    return checked;

  const spec::Variant &variant = attention.impl().variant();
  exec::InputView view;
  view.queryCount = plan.plan.queryCount();
  view.q = static_cast<const std::uint16_t *>(inputs.q);
  view.k = inputs.k;
  view.v = variant.tensors.valueInKey ? inputs.k : inputs.v;
  view.cache = api::cacheLayoutsOf(variant, inputs.strides, inputs.vStrides);
  view.qStride = inputs.qStride;
  view.pageSize = attention.pageSize();
  view.pageTable = inputs.pageTable.data();
  view.params = slots->data();
  const exec::OutputView written{static_cast<std::uint16_t *>(outputs.out), outputs.lse, outputs.outStride};
  if (auto ran = launch(*attention.impl().cpuKernel, variant, view, written); !ran || !inputs.checksFinite)
    return api::toPublic(std::move(ran));
  if (const auto found = exec::findNotFinite(variant, plan.plan, params.reach(), view,
                                             {written.out, written.lse, written.outStride}))
    return api::toPublic(*found);
  return {};
}

/// Whether lists of that shape are the attention's.
Result<void> checkLists(const Attention &attention, const Selection::Impl &selection) {
  const spec::Variant &variant = attention.impl().variant();
  if (!variant.select)
    return usage("`" + variant.name + "` selects nothing", "write `select { budget = 4096; }` in the spec");
  if (variant.lists() != selection.lists)
    return usage("the selection has " + std::to_string(selection.lists) +
                     (selection.lists == 1 ? " list" : " lists") + " a query, `" + variant.name + "` has " +
                     std::to_string(variant.lists()),
                 "make one for this attention");
  return {};
}

} // namespace

Runtime::Runtime(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Runtime::Runtime(Runtime &&) noexcept = default;
Runtime &Runtime::operator=(Runtime &&) noexcept = default;
Runtime::~Runtime() = default;

Result<Runtime> Runtime::create(const RuntimeOptions &options) {
  if (auto checked = api::checkThreads("RuntimeOptions::threads", options.threads); !checked)
    return checked.error();
  return api::guarded([&]() -> Result<Runtime> {
    auto executor =
        exec::CpuExecutor::create(options.threads > 0 ? options.threads : exec::usableProcessors());
    if (!executor)
      return api::toPublic(executor.error());
    return Runtime(std::make_unique<Impl>(std::move(*executor)));
  });
}

int Runtime::threads() const { return impl_->executor.threads(); }

Result<void> Runtime::run(const Attention &attention, const Plan &plan, const Inputs &inputs,
                          const Outputs &outputs) const {
  return api::guarded([&] {
    const auto launch = [&](const auto &kernel, const auto &variant, const auto &in, const auto &out) {
      return impl_->executor.run(kernel, variant, plan.impl().plan, in, out);
    };
    return checkAndRun(attention, plan.impl(), inputs, outputs, launch);
  });
}

Result<void> Runtime::runSelecting(const Attention &attention, const Plan &plan, Selection &selection,
                                   const Inputs &inputs, const Outputs &outputs) const {
  return api::guarded([&]() -> Result<void> {
    Selection::Impl &lists = selection.impl();
    if (auto checked = checkLists(attention, lists); !checked)
      return checked;
    const auto launch = [&](const auto &kernel, const auto &variant, const auto &in, const auto &out) {
      lists.stamp = nullptr;
      return impl_->executor.runSelecting(kernel, variant, plan.impl().plan, in, out, lists.budget,
                                          lists.chosen, lists.paths);
    };
    if (auto ran = checkAndRun(attention, plan.impl(), inputs, outputs, launch); !ran)
      return ran;
    lists.stamp = plan.impl().stamp;
    lists.generation = plan.impl().generation;
    lists.isRedrafted = plan.impl().isRedrafted;
    return {};
  });
}

Result<void> Runtime::runSparse(const Attention &attention, const Plan &plan, const Selection &selection,
                                const Inputs &inputs, const Outputs &outputs) const {
  return api::guarded([&]() -> Result<void> {
    const Selection::Impl &lists = selection.impl();
    if (auto checked = checkLists(attention, lists); !checked)
      return checked;
    if (!lists.stamp || lists.stamp != plan.impl().stamp || lists.generation != plan.impl().generation)
      return usage(lists.stamp ? "the selection is stale: the tree has changed since it was made"
                               : "the selection is empty: no run has selected yet",
                   "call Runtime::runSelecting first");
    if (*lists.isRedrafted)
      return usage("the selection is stale: another mask of drafts has come since it was made",
                   "call Runtime::runSelecting first");
    const auto launch = [&](const auto &kernel, const auto &variant, const auto &in, const auto &out) {
      return impl_->executor.runSparse(kernel, variant, lists.chosen, lists.paths, in, out);
    };
    return checkAndRun(attention, plan.impl(), inputs, outputs, launch);
  });
}

} // namespace deft
