#include "compiler/support/InOrder.h"
#include "runtime/exec/cuda/CudaPlan.h"

#include <algorithm>
#include <cstdint>
#include <string>

/// What a plan does of a variant that selects, beside the full attention.
namespace deft::exec {

using support::inOrder;
using support::Result;

namespace {

support::Error usage(std::string message, std::string hint) {
  return {support::ErrorCode::Usage, std::move(message), std::move(hint)};
}

} // namespace

Result<void> CudaPlan::checkSelecting(const CudaKernels &kernels) const {
  if (!selecting_)
    return usage("the plan was made without a budget, for runs that do not select", "give it a budget");
  const spec::Variant &own = kernels_->variant(), &other = kernels.variant();
  if (!other.select || !kernels.selecting())
    return usage("`" + other.name + "` selects nothing", "write `select { budget = 4096; }` in the spec");
  if (other.readsGivenLists() != own.readsGivenLists())
    return usage("the plan is for lists " +
                     std::string(own.readsGivenLists() ? "by `caller`" : "that runs select") + ", and `" +
                     other.name + "` has others",
                 "make one for this attention");
  if (other.lists() != own.lists() || other.cache.pageSize != own.cache.pageSize)
    return usage("the plan is for " + std::to_string(own.lists()) + " lists a query in pages of " +
                     std::to_string(own.cache.pageSize) + " tokens, `" + other.name + "` has " +
                     std::to_string(other.lists()) + " and " + std::to_string(other.cache.pageSize),
                 "make one for this attention");
  return {};
}

Result<void> CudaPlan::checkUnions(const SelectingCudaKernels &own, bool isCaptured) const {
  const int has = isCaptured ? selecting_->split().unions.queries : onDevice_.largestUnion;
  if (has <= own.unionShape().queries)
    return {};
  return usage("the plan has " + std::to_string(has) +
                   " queries that read a union of their lists; these kernels take " +
                   std::to_string(own.unionShape().queries),
               own.unionShape().queries > 0 ? "make the plan for this attention; others can also run with it"
                                            : "build the package again");
}

Result<void> CudaPlan::checkGiven(const CudaKernels &kernels, const CudaPointers &pointers) const {
  const std::string name = kernels.variant().called();
  if (kernels.variant().readsGivenLists() == (pointers.lists != nullptr))
    return {};
  return pointers.lists ? usage("lists are given, and " + name + " reads those that a run has selected",
                                "write `by = caller` in its `select`")
                        : usage("no lists are given, and " + name + " reads those of its caller",
                                "give the run lists of slots");
}

Result<void> CudaPlan::checkLists(const CudaPointers &pointers, bool isCaptured) const {
  const Lists &lists = isCaptured && capturedLists_.areThere ? capturedLists_ : lists_;
  if (!lists.areThere)
    return usage("there are no lists of the plan on the device: no run has selected since it was uploaded",
                 "run with selection first");
  if (lists.pageTable != pointers.pageTable)
    return usage("the run has another page table than the selecting run",
                 "lists hold places in the cache: use one page table to select and to read");
  return {};
}

Result<void> CudaPlan::lookAtLists(const CudaKernels &kernels, const CudaPointers &pointers,
                                   cu::Stream stream) {
  if (!listCheck_ || pointers.cachePages == 0)
    return {};
  const std::int64_t slots =
      std::int64_t{pointers.cachePages} * std::max(kernels.variant().cache.pageSize, 1);
  return listCheck_->launch(pointers.lists, onDevice_.queries, selecting_->split().budget, slots, stream);
}

Result<void> CudaPlan::runSelecting(const CudaKernels &kernels, const CudaPointers &pointers,
                                    cu::Stream stream) {
  if (auto checked = checkSelecting(kernels); !checked)
    return checked;
  if (kernels.variant().readsGivenLists())
    return usage(kernels.variant().called() + " selects nothing: its lists are by `caller`",
                 "give lists to its sparse runs");
  const device::Device::Current current(*kernels_->device());
  const auto isCaptured = beginRun(kernels, pointers, stream);
  if (!isCaptured)
    return isCaptured.error();
  if (auto checked = checkUnions(*kernels.selecting(), *isCaptured); !checked)
    return checked;
  Lists &lists = *isCaptured ? capturedLists_ : lists_;
  lists = {};
  const int unions = *isCaptured ? room_.unions() : onDevice_.unions;
  auto launched = inOrder(
      [&] { return launchPhases(kernels, pointers, kernels.selecting(), *isCaptured, stream); },
      [&] { return launchMerge(kernels, pointers, mergedQueries(*isCaptured), *isCaptured, stream); },
      [&] {
        return selecting_->select(kernels, *isCaptured ? room_.queries : onDevice_.queries, unions, room_,
                                  sections_, plan_.as<std::byte>(), pointers.pageTable, stream);
      });
  if (launched)
    lists = {true, pointers.pageTable};
  return launched;
}

Result<void> CudaPlan::runSparse(const CudaKernels &kernels, const CudaPointers &pointers,
                                 cu::Stream stream) {
  auto checked =
      inOrder([&] { return checkSelecting(kernels); }, [&] { return checkGiven(kernels, pointers); });
  if (!checked)
    return checked;
  const device::Device::Current current(*kernels_->device());
  const auto isCaptured = beginRun(kernels, pointers, stream);
  if (!isCaptured)
    return isCaptured.error();
  checked = pointers.lists ? lookAtLists(kernels, pointers, stream) : checkLists(pointers, *isCaptured);
  if (!checked)
    return checked;
  const SelectingCudaKernels &own = *kernels.selecting();
  if (auto checked = checkUnions(own, *isCaptured); !checked)
    return checked;
  abi::AttendArgs attend = argsOf(kernels, pointers, *isCaptured);
  attend.itemBegin = 0;
  attend.planLines = attend.tableLines = 0; // which lists are not in
  if (pointers.lists)
    attend.pageTable = pointers.lists;
  void *params[] = {&attend, const_cast<abi::ParamSlot *>(pointers.params->slots())};
  if (auto made = makeQueries(kernels, *isCaptured, params[1], attend, stream); !made)
    return made;
  const auto itemsAt = [&](std::size_t section) {
    return reinterpret_cast<const abi::Item *>(plan_.as<std::byte>() + section);
  };
  if (const int items = *isCaptured ? room_.unitedItems : onDevice_.unitedItems; items > 0) {
    abi::AttendArgs united = attend;
    if (pointers.lists) {
      const int unions = *isCaptured ? room_.unions() : onDevice_.unions;
      if (auto made =
              selecting_->unite(kernels, unions, sections_, plan_.as<std::byte>(), pointers.lists, stream);
          !made)
        return made;
    }
    selecting_->point(sections_, plan_.as<std::byte>(), united);
    united.items = itemsAt(sections_.unitedItems);
    united.itemCount = items;
    void *unitedParams[] = {&united, params[1]};
    if (auto launched = own.united().launch(own.unitedBlocks(items), unitedParams, stream); !launched)
      return launched;
  }
  if (const int items = *isCaptured ? room_.sparseItems : onDevice_.sparseItems; items > 0) {
    attend.items = itemsAt(sections_.sparseItems);
    attend.itemCount = items;
    if (auto launched = own.sparse().launch(own.sparseBlocks(items), params, stream); !launched)
      return launched;
  }
  const Merged merged{sections_.sparseMergeQuery, sections_.sparseMergeBegin, sections_.sparseMergeSlot,
                      *isCaptured ? room_.queries : onDevice_.sparseMerged};
  return launchMerge(kernels, pointers, merged, *isCaptured, stream);
}

Result<void> CudaPlan::readLists(Selection &selection, cu::Stream stream) const {
  if (!selecting_ || !(lists_.areThere || capturedLists_.areThere))
    return usage("there are no lists on the device: no run has selected yet", "run with selection first");
  const device::Device &device = *kernels_->device();
  const device::Device::Current current(device);
  if (const cu::Result result = device.api().streamSynchronize(stream); result != cu::kSuccess)
    return device.driver().error("a run that selects failed", result);
  return selecting_->read(onDevice_.queries, selection);
}

} // namespace deft::exec
