#include "runtime/exec/cuda/CudaPlan.h"

#include "compiler/kernels/Family.h"
#include "compiler/support/Log.h"
#include "runtime/exec/cuda/PointerRules.h"
#include "templates/deft/query_abi.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

namespace deft::exec {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

Error usage(std::string message, std::string hint = "") {
  return Error{ErrorCode::Usage, std::move(message), std::move(hint)};
}

static_assert(offsetof(abi::AttendArgs, queryPos) == 64, "what a block asks for first is one line");

/// What blocks ask for ahead of its use, at most: larger plans belong to runs that are long anyway.
constexpr std::size_t kAheadBytes = std::size_t{512} << 10;

/// Whether items read a third of the tree's tokens once more, or more of them: L2 is then asked less where
/// one head's items follow each other (docs/kernels.md#heads).
bool isMuchReadAgain(const plan::Plan &plan) {
  std::int64_t tokens = 0;
  for (const abi::Item &item : plan.items)
    tokens += item.tokens;
  return tokens - plan.readTokens >= plan.readTokens / 3;
}

/// Lines that begin within so many bytes.
int aheadLines(std::size_t bytes) {
  return static_cast<int>((std::min(bytes, kAheadBytes) + abi::kLineBytes - 1) / abi::kLineBytes);
}

} // namespace

CudaPlan::CudaPlan(std::shared_ptr<const CudaKernels> kernels)
    : kernels_(std::move(kernels)), slots_{Slot(kernels_->device()), Slot(kernels_->device())},
      plan_(kernels_->device()), partialOut_(kernels_->device()), partialLse_(kernels_->device()),
      queries_(kernels_->device()) {}

CudaPlan::~CudaPlan() { (void)waitForCopies(); }

Result<void> CudaPlan::waitForCopies() const {
  for (const Slot &slot : slots_)
    if (auto copied = slot.copied.wait("the copy of a plan"); !copied)
      return copied;
  return {};
}

Result<std::unique_ptr<CudaPlan>> CudaPlan::create(std::shared_ptr<const CudaKernels> kernels,
                                                   const CudaPlanOptions &options) {
  std::unique_ptr<CudaPlan> plan(new CudaPlan(std::move(kernels)));
  for (Slot &slot : plan->slots_)
    if (auto created = slot.copied.create(); !created)
      return created.error();
  if (options.isWatched) {
    auto watch = PlanWatch::create(plan->kernels_->device());
    if (!watch)
      return watch.error();
    plan->watch_.emplace(std::move(*watch));
    plan->watch_->setFreeRuns(static_cast<std::uint64_t>(options.freeRuns));
  }
  if (options.growth) {
    auto growth = PlanGrowth::create(plan->kernels_->device(), *options.growth);
    if (!growth)
      return growth.error();
    plan->growth_.emplace(std::move(*growth));
  }
  if (options.checksPages && plan->kernels_->variant().cache.isPaged()) {
    auto check = PageCheck::create(plan->kernels_->device());
    if (!check)
      return check.error();
    plan->pageCheck_.emplace(std::move(*check));
  }
  if (options.checksPages && options.budget > 0 && plan->kernels_->variant().readsGivenLists()) {
    auto check = ListCheck::create(plan->kernels_->device());
    if (!check)
      return check.error();
    plan->listCheck_.emplace(std::move(*check));
  }
  if (options.budget > 0) {
    if (options.growth)
      return usage("a plan that selects does not follow lengths on the device",
                   "the host must know the tokens of each query's path: make two plans");
    auto selecting =
        PlanSelecting::create(*plan->kernels_, options.budget, options.isInvariant, options.listOverlap,
                              options.sparseCuts ? &*options.sparseCuts : nullptr);
    if (!selecting)
      return selecting.error();
    plan->selecting_.emplace(std::move(*selecting));
  }
  PlanRoom room = options.room.value_or(PlanRoom{});
  room.items.resize(plan->kernels_->phases());
  if (auto made = plan->setRoom(room); !made)
    return made.error();
  plan->isFixed_ = options.room.has_value();
  return plan;
}

Result<void> CudaPlan::setRoom(PlanRoom room) {
  room.growsOnDevice = growth_.has_value();
  if (selecting_)
    selecting_->completeRoom(room);
  if (auto counted = room.checkCounted(kernels_->variant()); !counted)
    return counted; // and all is as it was
  if (auto waited = waitForCopies(); !waited)
    return waited;
  onDevice_.isValid = isWritten_ = isFixed_ = false;
  lists_ = capturedLists_ = {};
  // Where memory cannot be had, no plan fits what there is: the next one asks for room again.
  room_ = {};
  sections_ = {};
  if (auto reserved = reserve(room); !reserved)
    return reserved;
  room_ = std::move(room);
  return {};
}

Result<void> CudaPlan::reserve(const PlanRoom &room) {
  PlanSections sections = PlanSections::of(room);
  const RoomBytes bytes = RoomBytes::of(room, kernels_->variant());
  for (Slot &slot : slots_) {
    if (slot.memory.use_count() > 1) // a plan may have its runs there
      slot.memory = std::make_shared<device::HostMemory>(kernels_->device());
    if (auto reserved = slot.memory->reserve(bytes.plan, "a plan"); !reserved)
      return reserved;
    slot.filled = FilledCounts::all(room);
  }
  if (auto reserved = plan_.reserve(bytes.plan, "the plan"); !reserved)
    return reserved;
  if (auto reserved = partialOut_.reserve(bytes.partialOut, "the partial outputs"); !reserved)
    return reserved;
  if (auto reserved = partialLse_.reserve(bytes.partialLse, "the partial lse"); !reserved)
    return reserved;
  if (auto reserved = queries_.reserve(bytes.queries, "results of the hook `query`"); !reserved)
    return reserved;
  if (selecting_)
    if (auto reserved = selecting_->reserve(bytes); !reserved)
      return reserved;
  sections_ = std::move(sections);
  return {};
}

void CudaPlan::lendRoom(plan::RunList &runs) {
  const auto firstRun = [&](const Slot &slot) {
    return reinterpret_cast<abi::Run *>(slot.memory->as<std::byte>() + sections_.runs);
  };
  if (isWritten_ || room_.runs == 0) // a plan waits there for its upload
    return runs.lend({});
  // The runs stand in the last plan's slot: once that is copied they may stay there, and nothing is moved.
  if (const Slot &last = slots_[1 - next_]; runs.data() == firstRun(last) && last.copied.isReached())
    next_ = 1 - next_;
  const Slot &slot = slots_[next_];
  if (!slot.copied.isReached()) // nobody waits here
    return runs.lend({});
  runs.lend({slot.memory, {firstRun(slot), static_cast<std::size_t>(room_.runs)}});
}

Result<void> CudaPlan::write(const plan::Plan &plan, const plan::DraftTables &drafts) {
  if (!drafts.isEmpty() && !drafts_) {
    auto created = PlanDrafts::create(kernels_->device());
    if (!created)
      return created.error();
    drafts_.emplace(std::move(*created));
  }
  SelectingTables selecting;
  if (selecting_) {
    if (!drafts.isEmpty())
      return usage("a plan that selects does not support drafts whose tree only the device knows",
                   "add the drafts to the host's tree, or make the plan without a budget");
    selecting = selecting_->tablesOf(plan, isFixed_ ? room_.unitedQueries : plan.queryCount());
  }
  if (auto fits = room_.check(plan, drafts, selecting); !fits) {
    if (isFixed_)
      return fits;
    PlanRoom room = room_;
    room.growFor(plan, drafts, selecting);
    if (auto grown = setRoom(room); !grown)
      return grown;
  }
  Slot &slot = slots_[next_];
  if (auto free = slot.copied.wait("the copy of a plan"); !free)
    return free;
  slot.facts.bytes = writeSections(plan, room_, sections_, slot.memory->as<std::byte>(), slot.filled);
  if (growth_)
    writeGrowth(plan, growthTables(plan, growth_->rules()), room_, sections_, slot.memory->as<std::byte>());
  if (room_.draftRequests > 0)
    writeDrafts(plan, drafts, room_, sections_, slot.memory->as<std::byte>());
  if (selecting_)
    selecting_->write(selecting, room_, sections_, plan_.as<std::byte>(), slot.memory->as<std::byte>());
  slot.facts.queries = plan.queryCount();
  slot.facts.sparseItems = static_cast<int>(selecting.items.size());
  slot.facts.sparseCut = selecting.cut;
  slot.facts.sparseMerged = static_cast<int>(selecting.mergeQuery.size());
  slot.facts.unions = static_cast<int>(selecting.unions.size());
  slot.facts.unitedItems = static_cast<int>(selecting.unitedItems.size());
  slot.facts.largestUnion = 0;
  for (const abi::Union &one : selecting.unions)
    slot.facts.largestUnion = std::max(slot.facts.largestUnion, one.queryCount);
  slot.facts.hasDrafts = slot.facts.needsMask = !drafts.isEmpty();
  slot.facts.generation = plan.generation;
  slot.facts.mergedQueries = static_cast<int>(plan.mergeQuery.size());
  slot.facts.items.assign(slot.filled.items.begin(), slot.filled.items.begin() + std::ssize(plan.phases));
  slot.facts.areByHead = kernels::isDealt(kernels_->config()) && isMuchReadAgain(plan);
  slot.facts.isValid = isWritten_ = true;
  return {};
}

PlanRoom CudaPlan::roomOf(const plan::Plan &plan) {
  return PlanRoom::of(plan, {},
                      selecting_ ? selecting_->tablesOf(plan, plan.queryCount()) : SelectingTables{});
}

Result<void> CudaPlan::upload(cu::Stream stream) {
  if (!isWritten_)
    return {};
  const device::Device &device = *kernels_->device();
  const device::Device::Current current(device);
  const auto capturing = device.isCapturing(stream);
  if (!capturing)
    return capturing.error();
  if (*capturing)
    return usage("a plan cannot be uploaded on a stream that is being captured: each replay would copy the "
                 "buffer's contents at that time",
                 "upload before the capture, and before each replay");
  Slot &slot = slots_[next_];
  if (const cu::Result result =
          device.api().memcpyHtoDAsync(reinterpret_cast<cu::DevicePtr>(plan_.as<void>()),
                                       slot.memory->as<void>(), slot.facts.bytes, stream);
      result != cu::kSuccess)
    return device.driver().error("cannot upload the plan", result);
  if (auto marked = slot.copied.record(stream, "the upload of a plan"); !marked)
    return marked;
  std::swap(onDevice_, slot.facts); // with its memory
  lists_ = {};
  if (watch_)
    watch_->setPlan(onDevice_.generation);
  isWritten_ = false;
  next_ = 1 - next_;
  return {};
}

Result<void> CudaPlan::checkOnDevice() const {
  if (!onDevice_.isValid)
    return usage(isWritten_ ? "the plan has not been uploaded since it was made or its memory grew"
                            : "there is no plan on the device",
                 "upload one first");
  return {};
}

Result<void> CudaPlan::checkFresh(const CudaKernels &kernels) const {
  if (!onDevice_.isValid || !watch_ || watch_->tree() == onDevice_.generation)
    return {};
  support::log(
      {support::LogKind::StalePlan, "a run of " + kernels.variant().called() + " on the device was refused"});
  return usage("the plan on the device is stale: it was made for generation " +
                   std::to_string(onDevice_.generation) + " of the tree, which is now at " +
                   std::to_string(watch_->tree()),
               isWritten_ ? "upload the new plan" : "update and upload it first");
}

Result<void> CudaPlan::checkRun(const CudaKernels &kernels, const CudaPointers &pointers) const {
  const spec::Variant &own = kernels_->variant(), &other = kernels.variant();
  if (&kernels != kernels_.get()) {
    bool isSame =
        own.queryHeads == other.queryHeads && own.kvHeads == other.kvHeads &&
        other.tensors.out.dim <= own.tensors.out.dim && kernels.phases() == kernels_->phases() &&
        (!other.query || other.tensors.q.dim <= own.tensors.q.dim) &&             // for which it has room
        kernels.device()->facts().ordinal == kernels_->device()->facts().ordinal; // opened twice, too
    for (std::size_t p = 0; isSame && p < kernels.phases(); ++p)
      isSame = kernels.config().phases[p].tileQ >= kernels_->config().phases[p].tileQ;
    if (!isSame)
      return usage("the plan was made for `" + own.name + "`, and `" + other.name +
                       "` has other heads, tiles or another device",
                   "make one for this attention");
    if (other.query && !own.query)
      return usage("the plan was made for `" + own.name + "`, which has no hook `query` as `" + other.name +
                       "` has",
                   "make it for this attention; others without the hook can also run with it");
  }
  if (auto there = checkOnDevice(); !there)
    return there;
  if (auto fresh = checkFresh(kernels); !fresh)
    return fresh;
  if (onDevice_.needsMask)
    return usage("the plan on the device does not know yet which drafts see which",
                 "put GpuPlan::draft on the stream before the runs");
  return checkPointers(other, pointers);
}

Result<void> CudaPlan::follow(const int *lengths, cu::Stream stream) {
  if (!growth_)
    return usage("the plan was made to follow lengths only on the host",
                 "make it to follow them on the device");
  if (auto there = checkOnDevice(); !there)
    return there;
  if (onDevice_.hasDrafts)
    return usage("requests with drafts follow no lengths of queries", "give DraftMask::lengths");
  const device::Device::Current current(*kernels_->device());
  const auto capturing = kernels_->device()->isCapturing(stream);
  if (!capturing)
    return capturing.error();
  isFixed_ = isFixed_ || *capturing;
  return growth_->launch(lengths, room_, sections_, plan_.as<std::byte>(), stream);
}

Result<void> CudaPlan::draft(const DraftInput &input, cu::Stream stream) {
  if (auto there = checkOnDevice(); !there)
    return there;
  if (!onDevice_.hasDrafts)
    return usage("the plan on the device has no requests with drafts", "give PagedRequests::drafts");
  const device::Device::Current current(*kernels_->device());
  const auto capturing = kernels_->device()->isCapturing(stream);
  if (!capturing)
    return capturing.error();
  isFixed_ = isFixed_ || *capturing;
  auto launched = drafts_->launch(input, room_, sections_, plan_.as<std::byte>(), stream);
  if (launched)
    onDevice_.needsMask = false;
  return launched;
}

Result<void> CudaPlan::makeQueries(const CudaKernels &kernels, bool isCaptured, void *params,
                                   abi::AttendArgs &attend, cu::Stream stream) const {
  const device::Kernel *const kernel = kernels.query();
  if (kernel == nullptr)
    return {};
  abi::QueryArgs args{};
  args.q = attend.q;
  args.made = queries_.as<void>();
  args.callerIndex = attend.callerIndex;
  args.queryPos = attend.queryPos;
  args.queries = isCaptured ? room_.queries : onDevice_.queries;
  args.qStride = attend.qStride;
  attend.q = args.made;
  attend.qStride = kernels.variant().queryHeads * kernels.variant().tensors.q.dim;
  void *both[] = {&args, params};
  return kernel->launch(kernels.queryBlocks(args.queries), both, stream);
}

Result<bool> CudaPlan::beginRun(const CudaKernels &kernels, const CudaPointers &pointers, cu::Stream stream) {
  if (auto checked = checkRun(kernels, pointers); !checked)
    return checked.error();
  auto capturing = kernels_->device()->isCapturing(stream);
  if (capturing)
    isFixed_ = isFixed_ || *capturing;
  return capturing;
}

abi::AttendArgs CudaPlan::argsOf(const CudaKernels &kernels, const CudaPointers &pointers,
                                 bool isCaptured) const {
  const auto at = [&](std::size_t offset) { return plan_.as<std::byte>() + offset; };
  abi::AttendArgs attend{};
  attend.items = reinterpret_cast<const abi::Item *>(at(sections_.items));
  attend.runs = reinterpret_cast<const abi::Run *>(at(sections_.runs));
#define DEFT_POINT(NAME) attend.NAME = reinterpret_cast<const int *>(at(sections_.NAME));
  DEFT_ARRAYS_OF_QUERIES(DEFT_POINT)
#undef DEFT_POINT
  attend.pageTable = pointers.pageTable;
  attend.planLines =
      aheadLines((isCaptured ? sections_.end : onDevice_.bytes) - sections_.callerIndex); // all behind it
  attend.tableLines =
      pointers.pageTable ? aheadLines(static_cast<std::size_t>(pointers.pages) * sizeof(int)) : 0;
  attend.q = pointers.q;
  attend.k = pointers.k;
  const spec::Tensors &tensors = kernels.variant().tensors;
  const bool isInKey = tensors.valueInKey && pointers.v == nullptr;
  attend.v = isInKey ? static_cast<const std::byte *>(pointers.k) + tensors.ropeOffset() : pointers.v;
  attend.out = pointers.out;
  attend.lse = pointers.lse;
  attend.partialOut = partialOut_.as<void>();
  attend.partialLse = partialLse_.as<float>();
  attend.qStride = qStrideOf(kernels.variant(), pointers);
  attend.outStride = outStrideOf(kernels.variant(), pointers);
  attend.kCache = placesOf(kernels.variant(), pointers.cache.k);
  attend.vCache = placesOf(kernels.variant(), pointers.cache.v);
  if (selecting_)
    attend.selected = reinterpret_cast<const abi::Selected *>(at(sections_.selected));
  return attend;
}

Result<void> CudaPlan::launchPhases(const CudaKernels &kernels, const CudaPointers &pointers,
                                    const SelectingCudaKernels *selecting, bool isCaptured,
                                    cu::Stream stream) {
  abi::AttendArgs attend = argsOf(kernels, pointers, isCaptured);
  if (kernels.readByTensorMap())
    cacheBoxes_.fill(*kernels.device(), kernels.variant(), pointers.cache, pointers.cachePages, attend);
  const spec::CacheSpec &cache = kernels.variant().cache; // another layer's may have other pages, or none
  if (pageCheck_ && cache.isPaged())
    if (auto launched = pageCheck_->launch(attend.items, room_.allItems(), attend.runs, pointers.pageTable,
                                           cache.pageSize, pointers.cachePages, stream);
        !launched)
      return launched;
  void *params[] = {&attend, const_cast<abi::ParamSlot *>(pointers.params->slots())};
  if (auto made = makeQueries(kernels, isCaptured, params[1], attend, stream); !made)
    return made;
  for (std::size_t p = 0; p < kernels.phases(); ++p) {
    attend.itemBegin = sections_.itemBegin[p];
    attend.itemCount = isCaptured ? room_.items[p] : onDevice_.items[p];
    // A captured launch has room for more items. They would lie between those of two heads, and as blocks
    // take units at equal distances, some would get twice the work of others.
    attend.byHead = onDevice_.areByHead && attend.itemCount == onDevice_.items[p];
    const device::Kernel &kernel = selecting ? selecting->attend(p) : kernels.attend(p);
    const unsigned blocks =
        selecting ? selecting->attendBlocks(p, attend.itemCount) : kernels.attendBlocks(p, attend.itemCount);
    const bool isBehindQueries = p == 0 && kernels.query() != nullptr;
    if (auto launched = isBehindQueries ? kernel.launchDependent(blocks, params, stream)
                                        : kernel.launch(blocks, params, stream);
        !launched)
      return launched;
  }
  return {};
}

CudaPlan::Merged CudaPlan::mergedQueries(bool isCaptured) const {
  return {sections_.mergeQuery, sections_.mergeBegin, sections_.mergeSlot,
          isCaptured ? room_.mergedQueries : onDevice_.mergedQueries};
}

Result<void> CudaPlan::launchMerge(const CudaKernels &kernels, const CudaPointers &pointers,
                                   const Merged &merged, bool isCaptured, cu::Stream stream) {
  const auto at = [&](std::size_t offset) { return plan_.as<std::byte>() + offset; };
  abi::MergeArgs merge{};
  merge.out = pointers.out;
  merge.outStride = outStrideOf(kernels.variant(), pointers);
  merge.lse = pointers.lse;
  merge.partialOut = partialOut_.as<void>();
  merge.partialLse = partialLse_.as<float>();
  merge.callerIndex = reinterpret_cast<const int *>(at(sections_.callerIndex));
  merge.queryPos = reinterpret_cast<const int *>(at(sections_.queryPos));
  merge.mergeQuery = reinterpret_cast<const int *>(at(merged.query));
  merge.mergeBegin = reinterpret_cast<const int *>(at(merged.begin));
  merge.mergeSlot = reinterpret_cast<const int *>(at(merged.slot));
  merge.mergeCount = merged.count;
  unsigned blocks = kernels.mergeBlocks(merge.mergeCount);
  if (isCaptured && watch_) { // the host looks by itself at what it enqueues
    merge.watch = watch_->onDevice();
    merge.runsOfPlan = reinterpret_cast<unsigned long long *>(at(sections_.runsOfPlan));
    ++blocks;
  }
  // A kernel without hooks takes the first parameter alone.
  void *params[] = {&merge, const_cast<abi::ParamSlot *>(pointers.params->slots())};
  return kernels.merge().launchDependent(blocks, params, stream);
}

Result<void> CudaPlan::run(const CudaKernels &kernels, const CudaPointers &pointers, cu::Stream stream) {
  const device::Device::Current current(*kernels_->device());
  const auto isCaptured = beginRun(kernels, pointers, stream);
  if (!isCaptured)
    return isCaptured.error();
  if (auto attended = launchPhases(kernels, pointers, nullptr, *isCaptured, stream); !attended)
    return attended;
  return launchMerge(kernels, pointers, mergedQueries(*isCaptured), *isCaptured, stream);
}

Result<void> CudaPlan::poison() {
  if (auto filled = partialOut_.fill(0xff); !filled)
    return filled;
  if (auto filled = queries_.fill(0xff); !filled)
    return filled;
  return partialLse_.fill(0xff);
}

Result<void> CudaPlan::checkReplays() {
  std::optional<Error> fault;
  if (growth_)
    fault = growth_->takeFault();
  if (!fault && pageCheck_)
    fault = pageCheck_->takeFault();
  if (!fault && listCheck_)
    fault = listCheck_->takeFault();
  if (!fault && drafts_)
    fault = drafts_->takeFault();
  if (fault)
    return *fault;
  if (!watch_)
    return {};
  const std::uint64_t seen = watch_->takeStaleSeen();
  if (seen == 0)
    return {};
  support::log({support::LogKind::StalePlan, "a replayed graph of " + kernels_->variant().called() +
                                                 " ran with a plan older than generation " +
                                                 std::to_string(seen) + " of its tree"});
  return usage("a replayed graph ran with a stale plan: the tree was at generation " + std::to_string(seen) +
                   ", and the plan was older",
               "update and upload the plan before each replay that follows a change of the tree");
}

} // namespace deft::exec
