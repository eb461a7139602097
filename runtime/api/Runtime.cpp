#include "compiler/support/Log.h"
#include "compiler/support/NvtxRange.h"
#include "runtime/api/AttentionImpl.h"
#include "runtime/api/CacheLayouts.h"
#include "runtime/api/CheckOptions.h"
#include "runtime/api/ParamsImpl.h"
#include "runtime/api/PlanImpl.h"
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

const std::uint16_t *halves(const void *memory) { return static_cast<const std::uint16_t *>(memory); }

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
  return api::guarded([&]() -> Result<void> {
    const support::NvtxRange range("deft run");
    if (auto checked = checkRun(attention, plan.impl(), inputs, outputs); !checked)
      return checked;
    if (const auto &kernel = attention.impl().cpuKernel; !kernel)
      return api::toPublic(kernel.error());
    std::optional<Params> defaults;
    if (!inputs.params)
      defaults.emplace(attention);
    const Params::Impl &params = inputs.params ? inputs.params->impl() : defaults->impl();
    if (&params.attention.impl() != &attention.impl())
      return usage("the parameters are those of another attention");
    if (!plan.impl().facts.reach.isAll()) // else it serves every mask, and a run need not ask for this one's
      if (auto checked = plan.impl().checkReach(params.reach(), attention.name()); !checked)
        return checked;
    const auto slots = params.slots();
    if (!slots)
      return slots.error();

    const spec::Variant &variant = attention.impl().variant();
    exec::InputView view;
    view.queryCount = plan.queryCount();
    view.q = halves(inputs.q);
    view.k = halves(inputs.k);
    view.v = halves(variant.tensors.valueInKey ? inputs.k : inputs.v);
    view.cache = api::cacheLayoutsOf(variant, inputs.strides, inputs.vStrides);
    view.qStride = inputs.qStride;
    view.pageSize = attention.pageSize();
    view.pageTable = inputs.pageTable.data();
    view.params = slots->data();
    return api::toPublic(
        impl_->executor.run(*attention.impl().cpuKernel, variant, plan.impl().plan, view,
                            {static_cast<std::uint16_t *>(outputs.out), outputs.lse, outputs.outStride}));
  });
}

} // namespace deft
