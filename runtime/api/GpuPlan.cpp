#include "compiler/kernels/Legality.h"
#include "compiler/support/NvtxRange.h"
#include "runtime/api/AttentionImpl.h"
#include "runtime/api/CacheLayouts.h"
#include "runtime/api/CheckOptions.h"
#include "runtime/api/GpuImpl.h"
#include "runtime/api/PlanImpl.h"
#include "runtime/api/SelectionImpl.h"
#include "runtime/api/SequenceTreeImpl.h"
#include "runtime/api/SizedParamChecks.h"
#include "runtime/exec/Inputs.h"
#include "runtime/exec/cuda/CudaFiniteCheck.h"
#include "runtime/exec/cuda/CudaPlan.h"
#include "runtime/exec/cuda/DevicePageTable.h"

#include <algorithm>
#include <limits>

namespace deft {

using api::usage;

namespace {

/// Each tree gets the tuned config of its class, as far as the loaded kernels can run it.
void followTrees(const GpuAttention &attention, Plan::Impl &host) {
  const device::DeviceFacts &facts = attention.gpu().impl().device->facts();
  const Attention::Impl &impl = attention.attention().impl();
  const config::Config &loaded = attention.impl().kernels->config();
  host.chooser.emplace(impl.configs->of(config_cache::DeviceKey::ofGpu(facts)), impl.program.sharedVariant(),
                       target::targetForDevice(facts.major, facts.minor), loaded);
  host.chooser->setReach(attention.impl().reach);
  host.chooser->pinKernels(loaded);
}

/// With tables for all drafts that the rest of the room may have: a request has a query at least, and an item
/// reads drafts of some of them.
exec::PlanRoom withDraftTables(exec::PlanRoom room) {
  room.draftRequests = std::max(room.draftRequests, room.queries);
  room.draftItems = std::max(room.draftItems, room.allItems());
  room.draftParts = std::max(room.draftParts, room.allItems() + room.queries);
  return room;
}

device::cu::Stream toInternal(GpuStream stream) { return static_cast<device::cu::Stream>(stream); }

/// Who looks at a result waits for it, and a capture has none.
Result<void> checkNotCaptured(const GpuAttention &attention, GpuStream stream) {
  const device::Device &device = *attention.gpu().impl().device;
  const device::Device::Current current(device);
  const auto capturing = device.isCapturing(toInternal(stream));
  if (!capturing)
    return api::toPublic(capturing.error());
  if (*capturing)
    return usage("a run that looks for what is not finite cannot be captured: it waits for its result",
                 "leave out GpuInputs::checksFinite, and look at a run outside of the graph");
  return {};
}

/// Everything that can be wrong with a run but its plan, before anything is enqueued.
Result<exec::CudaPointers> checkedPointers(const Plan::Impl &host, bool checksPages,
                                           const GpuAttention &attention, const GpuInputs &inputs,
                                           const GpuOutputs &outputs) {
  const spec::Variant &variant = attention.attention().impl().variant();
  if (outputs.lse && !variant.withLse)
    return usage("`" + variant.name + "` gives no lse",
                 "write `output = ... with lse` in the spec, or leave GpuOutputs::lse null");
  const auto &params = attention.impl().params;
  if (!params)
    return params.error();
  if (auto checked = host.checkReach(attention.impl().reach, variant.name); !checked)
    return checked.error();
  if (host.options.invariant) // another layer's kernels may have been loaded for other plans
    for (const config::PhaseConfig &phase : attention.impl().kernels->config().phases)
      if (auto checked = kernels::checkInvariant(phase); !checked)
        return usage("`" + variant.name + "`: " + checked.error().message,
                     "load it with GpuLoadOptions::invariant");
  if (host.plan.queryCount() > 0 && (!inputs.q || !outputs.out))
    return usage(std::string(inputs.q ? "GpuOutputs::out" : "GpuInputs::q") + " is null");
  if (host.plan.tableTokens > 0 && (!inputs.k || !inputs.v))
    return usage(std::string(inputs.k ? "GpuInputs::v" : "GpuInputs::k") + " is null");
  if (host.plan.tableTokens > 0 && variant.cache.paged && !inputs.pageTable)
    return usage("GpuInputs::pageTable is null, and the cache of `" + variant.name + "` is paged");
  const Attention &of = attention.attention();
  if (const int pages = host.tablePages(of.pageSize()); inputs.tableEntries && *inputs.tableEntries < pages)
    return usage("the page table has " + std::to_string(*inputs.tableEntries) +
                 " pages, the tree's tokens lie in the first " + std::to_string(pages));
  for (const auto &strides : {inputs.strides, inputs.vStrides})
    if (auto checked = api::checkStrides(strides); !checked)
      return checked.error();
  if (auto checked = api::checkRowStride("GpuInputs::qStride", inputs.qStride, of.q(), of.queryHeads());
      !checked)
    return checked.error();
  if (auto checked =
          api::checkRowStride("GpuOutputs::outStride", outputs.outStride, of.out(), of.queryHeads());
      !checked)
    return checked.error();
  if (auto checked = api::checkCachePages("GpuInputs::cachePages", inputs.cachePages,
                                          attention.attention().pageSize(), host.plan.tableTokens);
      !checked)
    return checked.error();
  if (checksPages && !inputs.cachePages)
    return usage("GpuInputs::cachePages is not given, and the plan checks pages",
                 "leave out GpuPlanOptions::checksPages, or say how many the cache has");
  if (auto checked =
          api::checkSizedParams(attention.attention(), (*params)->counts(), inputs.cachePages, host.plan);
      !checked)
    return checked.error();
  constexpr std::int64_t kMostPages =
      std::numeric_limits<int>::max(); // of which entries can name all but one
  exec::CudaPointers pointers;
  const std::int64_t known = of.pageSize() == 0 ? host.plan.tableTokens : 0; // where nobody says it
  pointers.cachePages = static_cast<int>(std::min(inputs.cachePages.value_or(known), kMostPages));
  pointers.q = inputs.q;
  pointers.k = inputs.k;
  pointers.v = inputs.v;
  pointers.pageTable = inputs.pageTable;
  pointers.pages = host.tablePages(attention.attention().pageSize());
  pointers.cache = api::cacheLayoutsOf(variant, inputs.strides, inputs.vStrides);
  pointers.qStride = inputs.qStride;
  pointers.outStride = outputs.outStride;
  pointers.out = outputs.out;
  pointers.lse = outputs.lse;
  pointers.params = params->get();
  return pointers;
}

} // namespace

struct GpuPlan::Impl {
  GpuAttention attention; ///< of make(): keeps the device and the kernels' config
  Plan::Impl host;
  std::unique_ptr<exec::CudaPlan> device;
  std::shared_ptr<TreeStamp> followed; ///< by device->watch()
  plan::Choice taken;                  ///< how the plan was cut that was taken last
  bool checksPages = false;            ///< runs are to say how many the cache has
  bool isReserved = false;             ///< the room is that of reserve(), at least
  std::optional<exec::GrowthRules> growth;

  Impl(const GpuAttention &of, std::unique_ptr<exec::CudaPlan> on) : attention(of), device(std::move(on)) {}
  Impl(const Impl &) = delete;
  Impl &operator=(const Impl &) = delete;
  ~Impl() { unfollow(); }

  void unfollow() {
    if (followed)
      followed->unfollow(device->watch()->treeGeneration().get());
    followed = nullptr;
  }

  using Run = support::Result<void> (exec::CudaPlan::*)(const exec::CudaKernels &, const exec::CudaPointers &,
                                                        device::cu::Stream);
  Result<void> runAs(Run run, const GpuAttention &of, const GpuInputs &inputs, const GpuOutputs &outputs,
                     GpuStream stream) {
    return api::guarded([&]() -> Result<void> {
      const support::NvtxRange range("deft run");
      const auto pointers = checkedPointers(host, checksPages, of, inputs, outputs);
      if (!pointers)
        return pointers.error();
      if (inputs.checksFinite)
        if (auto checked = checkNotCaptured(of, stream); !checked)
          return checked;
      auto ran = (*device.*run)(*of.impl().kernels, *pointers, toInternal(stream));
      if (ran && inputs.checksFinite)
        ran = exec::checkFinite(*of.gpu().impl().device, of.attention().impl().variant(), host.plan,
                                of.impl().reach, *pointers, toInternal(stream));
      return api::toPublic(std::move(ran));
    });
  }

  /// The first drafts bring their tables: where room was reserved, for as many as it has.
  support::Result<void> makeDraftTables() {
    const exec::PlanRoom &room = device->room();
    if (host.drafts.isEmpty() || room.draftRequests > 0 || !isReserved || device->isFixed())
      return {};
    return device->setRoom(withDraftTables(room));
  }

  /// The host's plan is the tree's; the device's is to become it.
  Result<void> take() {
    if (followed != host.stamp) {
      unfollow();
      device->forget(); // generations of two trees say nothing of each other
      followed = host.stamp;
      followed->follow(device->watch()->treeGeneration());
    }
    if (growth)
      for (abi::DraftRequest &request : host.drafts.requests)
        request.mostGain = growth->slackAt(request.location);
    auto written = makeDraftTables();
    if (written)
      written = device->write(host.plan, host.drafts);
    if (!written)
      host.stamp = nullptr; // it is on no device, so it is of no tree
    else
      taken = host.planner.lastChoice();
    return api::toPublic(std::move(written));
  }
};

GpuPlan::GpuPlan(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
GpuPlan::GpuPlan(GpuPlan &&) noexcept = default;
GpuPlan &GpuPlan::operator=(GpuPlan &&) noexcept = default;
GpuPlan::~GpuPlan() = default;

Result<GpuPlan> GpuPlan::make(const GpuAttention &attention, const Tree &tree,
                              const GpuPlanOptions &options) {
  if (options.runsAhead < 0)
    return usage("a plan cannot have " + std::to_string(options.runsAhead) + " runs ahead");
  if (auto checked = api::checkRange("GpuPlanOptions::slack", options.slack, 0, plan::Planner::kMostGrowth);
      !checked)
    return checked.error();
  if (options.slack > 0 && !options.followsLengths)
    return usage("GpuPlanOptions::slack is given, and the plan does not follow lengths",
                 "set GpuPlanOptions::followsLengths, too");
  if (auto checked = api::checkPartition(options.plan); !checked)
    return checked.error();
  if (options.budget != 0)
    if (auto checked = exec::checkBudget(attention.attention().impl().variant(), options.budget); !checked)
      return api::toPublic(checked.error());
  return api::guarded([&]() -> Result<GpuPlan> {
    const auto &kernels = attention.impl().kernels;
    exec::CudaPlanOptions onDevice;
    onDevice.isWatched = true;
    onDevice.freeRuns = options.runsAhead;
    onDevice.checksPages = options.checksPages;
    onDevice.budget = options.budget;
    onDevice.isInvariant = options.plan.invariant;
    if (options.followsLengths)
      onDevice.growth = {.slack = options.slack, .pageSize = attention.attention().pageSize()};
    auto device = exec::CudaPlan::create(kernels, onDevice);
    if (!device)
      return api::toPublic(device.error());
    auto impl = std::make_unique<Impl>(attention, std::move(*device));
    impl->growth = onDevice.growth;
    Plan::Impl &host = impl->host;
    host.attention = kernels->variant().name;
    host.facts = plan::VariantFacts::of(kernels->variant(), config::DeviceKind::Gpu, attention.impl().reach);
    host.options = options.plan;
    host.options.params = nullptr;
    host.config = withOptions(kernels->config(), options.plan);
    if (host.config.phases.size() != kernels->phases())
      return usage("an invariant plan needs one kernel, the attention was loaded with " +
                       std::to_string(kernels->phases()),
                   "load it with GpuLoadOptions::invariant");
    if (options.plan.invariant)
      host.planner = plan::Planner({.isInvariant = true});
    else
      followTrees(attention, host);
    host.workers = kernels->blocksAtOnce();
    host.growsOnDevice = options.followsLengths;
    impl->checksPages = options.checksPages;
    if (auto made = host.make(tree); !made)
      return made.error();
    if (auto taken = impl->take(); !taken)
      return taken.error();
    return GpuPlan(std::move(impl));
  });
}

Result<Advanced> GpuPlan::advance(const Tree &tree) {
  return api::guarded([&]() -> Result<Advanced> {
    if (impl_->host.isCurrentFor(tree))
      return Advanced::Nothing;
    impl_->host.isCaptured = impl_->device->isFixed();
    impl_->device->lendRoom(impl_->host.plan.runs);
    auto advanced = impl_->host.advance(tree);
    if (!advanced)
      return advanced;
    auto taken = impl_->take();
    // The room that a graph has may be for fewer runs, or that of another cut. In path order, or as it was
    // then, the tree may still fit.
    if (!taken && impl_->host.isCaptured) {
      const plan::Choice chosen = impl_->host.planner.lastChoice();
      const bool hasMoreRuns =
          impl_->host.config.order == config::Order::Mixed || impl_->host.facts.pageSize > 0;
      if (hasMoreRuns && impl_->host.makeAs(chosen, tree))
        taken = impl_->take();
      if (!taken && chosen != impl_->taken && impl_->host.makeAs(impl_->taken, tree))
        taken = impl_->take();
      if (!taken && !impl_->host.options.invariant && impl_->host.makeAs(kPlanOfLeastRoom, tree))
        taken = impl_->take();
    }
    if (!taken)
      return taken.error();
    return advanced;
  });
}

Result<void> GpuPlan::upload(GpuStream stream) {
  return api::guarded([&] { return api::toPublic(impl_->device->upload(toInternal(stream))); });
}

Result<void> GpuPlan::follow(const int *lengths, GpuStream stream) {
  return api::guarded([&]() -> Result<void> {
    if (!lengths && impl_->host.plan.queryCount() > 0)
      return usage("the lengths are null");
    return api::toPublic(impl_->device->follow(lengths, toInternal(stream)));
  });
}

Result<void> GpuPlan::draft(const DraftMask &mask, GpuStream stream) {
  return api::guarded([&]() -> Result<void> {
    if (auto checked = impl_->host.checkMask(mask); !checked)
      return checked;
    if (mask.lengths && !impl_->growth)
      return usage("DraftMask::lengths is given, and the plan does not follow lengths",
                   "set GpuPlanOptions::followsLengths");
    return api::toPublic(
        impl_->device->draft({mask.bits, mask.depths, mask.lengths, mask.drafts}, toInternal(stream)));
  });
}

Result<void> GpuPlan::run(const GpuAttention &attention, const GpuInputs &inputs, const GpuOutputs &outputs,
                          GpuStream stream) {
  return impl_->runAs(&exec::CudaPlan::run, attention, inputs, outputs, stream);
}

Result<void> GpuPlan::runSelecting(const GpuAttention &attention, const GpuInputs &inputs,
                                   const GpuOutputs &outputs, GpuStream stream) {
  return impl_->runAs(&exec::CudaPlan::runSelecting, attention, inputs, outputs, stream);
}

Result<void> GpuPlan::runSparse(const GpuAttention &attention, const GpuInputs &inputs,
                                const GpuOutputs &outputs, GpuStream stream) {
  return impl_->runAs(&exec::CudaPlan::runSparse, attention, inputs, outputs, stream);
}

Result<void> GpuPlan::readLists(Selection &selection, GpuStream stream) const {
  return api::guarded([&]() -> Result<void> {
    const int budget = impl_->device->room().budget,
              lists = impl_->attention.attention().impl().variant().lists();
    Selection::Impl &into = selection.impl();
    if (into.budget != budget || into.lists != lists)
      return usage("the plan has " + std::to_string(lists) + " lists a query of " + std::to_string(budget) +
                       " tokens, the selection " + std::to_string(into.lists) + " of " +
                       std::to_string(into.budget),
                   "make it for this attention and the plan's budget");
    into.stamp = nullptr;
    return api::toPublic(impl_->device->readLists(into.chosen, toInternal(stream)));
  });
}

Result<void> GpuPlan::checkReplays() {
  return api::guarded([&] { return api::toPublic(impl_->device->checkReplays()); });
}

Result<void> GpuPlan::reserve(const GpuRoom &room) {
  constexpr int kMost = 1 << 28; // of any: more than a device's memory
  for (const auto &[name, value] :
       {std::pair("queries", room.queries), std::pair("items", room.items), std::pair("runs", room.runs),
        std::pair("partials", room.partials), std::pair("positions", room.positions),
        std::pair("stretches", room.stretches)})
    if (auto checked = api::checkRange(std::string("GpuRoom::") + name, value, 0, kMost); !checked)
      return checked;
  return api::guarded([&]() -> Result<void> {
    if (impl_->device->isFixed())
      return usage("a captured graph has fixed the plan's room", "make another plan, and capture again");
    exec::PlanRoom larger = impl_->device->room();
    larger.growTo(toInternal(room, larger.items.size()));
    impl_->isReserved = true;
    if (larger.draftRequests > 0)
      larger = withDraftTables(std::move(larger));
    if (auto set = impl_->device->setRoom(larger); !set) {
      if (!impl_->device->hasPlan()) // memory could not be had: advance() makes it anew
        impl_->host.stamp = nullptr;
      return api::toPublic(set.error());
    }
    return impl_->host.isCurrent() ? impl_->take() : Result<void>();
  });
}

GpuRoom GpuPlan::room() const {
  const exec::PlanRoom &room = impl_->device->room();
  const auto fewest = std::min_element(room.items.begin(), room.items.end());
  return {room.queries,   fewest == room.items.end() ? 0 : *fewest,
          room.runs,      room.partialSlots,
          room.positions, room.stretches};
}

bool GpuPlan::isCurrent() const { return impl_->host.isCurrent(); }
int GpuPlan::queryCount() const { return impl_->host.plan.queryCount(); }
PlanSummary GpuPlan::summary() const { return impl_->host.summary(); }
ConfigChoice GpuPlan::choice() const { return impl_->host.choice(); }

Result<std::string> GpuPlan::picture(const Tree &tree) const {
  return api::guarded([&] { return impl_->host.picture(tree, impl_->host.kernelPrices()); });
}

struct GpuPageTable::Impl {
  std::unique_ptr<exec::DevicePageTable> table;
};

GpuPageTable::GpuPageTable(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
GpuPageTable::GpuPageTable(GpuPageTable &&) noexcept = default;
GpuPageTable &GpuPageTable::operator=(GpuPageTable &&) noexcept = default;
GpuPageTable::~GpuPageTable() = default;

Result<GpuPageTable> GpuPageTable::make(const Gpu &gpu, int pages) {
  if (pages < 0)
    return usage("a page table cannot have " + std::to_string(pages) + " pages");
  return api::guarded([&]() -> Result<GpuPageTable> {
    auto table = exec::DevicePageTable::create(gpu.impl().device, pages);
    if (!table)
      return api::toPublic(table.error());
    return GpuPageTable(std::make_unique<Impl>(Impl{std::move(*table)}));
  });
}

Result<void> GpuPageTable::upload(const SequenceTree &sequences, GpuStream stream) {
  return api::guarded([&] {
    return api::toPublic(impl_->table->upload(sequences.impl().sequences.pool(), toInternal(stream)));
  });
}

Result<void> GpuPageTable::upload(std::span<const int> entries, GpuStream stream, int first) {
  return api::guarded(
      [&] { return api::toPublic(impl_->table->upload(entries, first, toInternal(stream))); });
}

const int *GpuPageTable::data() const { return impl_->table->data(); }

} // namespace deft
