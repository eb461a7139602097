#include "runtime/exec/cuda/PlanSelecting.h"

#include "compiler/support/InOrder.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace deft::exec {

using support::Error;
using support::ErrorCode;
using support::Result;

Result<PlanSelecting> PlanSelecting::create(const CudaKernels &kernels, int budget, bool isInvariant) {
  const std::string &name = kernels.variant().name;
  if (!kernels.variant().select)
    return Error{ErrorCode::Usage, "`" + name + "` selects nothing",
                 "write `select { budget = 4096; }` in the spec"};
  const SelectingCudaKernels *selecting = kernels.selecting();
  if (!selecting)
    return Error{ErrorCode::Usage, "the kernels of `" + name + "` do not select",
                 "the package is from before GPUs selected: build it again"};
  // Three waves of blocks, as the fastest splits of an H200 have them (tests/gpu/records/h200-select.json).
  constexpr int kWaves = 3;
  const int items = kWaves * selecting->sparse().blocksAtOnce() / selecting->sparseUnits();
  return PlanSelecting(kernels, {.budget = budget,
                                 .tileTokens = selecting->sparsePhase().tileKv,
                                 .items = std::max(items, 1),
                                 .isInvariant = isInvariant});
}

void PlanSelecting::completeRoom(PlanRoom &room) const {
  room.budget = split_.budget;
  room.sparseItems = split_.mostItems(room.queries);
}

Result<void> PlanSelecting::reserve(const RoomBytes &bytes) {
  auto reserved =
      support::inOrder([&] { return positions_.reserve(bytes.lists, "the lists of tokens"); },
                       [&] { return places_.reserve(bytes.lists, "the places of lists of tokens"); },
                       [&] { return counts_.reserve(bytes.counts, "the lengths of lists of tokens"); });
  if (!reserved || bytes.worth <= worthBytes_) // every selection leaves the worth as it found it
    return reserved;
  worthBytes_ = 0;
  reserved = support::inOrder([&] { return worth_.reserve(bytes.worth, "what tokens are worth"); },
                              [&] { return worth_.fill(0, bytes.worth); });
  static_assert(abi::kHiddenKey == 0, "as filled");
  if (reserved)
    worthBytes_ = bytes.worth;
  return reserved;
}

abi::Selected PlanSelecting::selectedAt(const PlanRoom &room, const PlanSections &sections,
                                        std::byte *plan) const {
  return {.worth = worth_.as<unsigned>(),
          .stretches = reinterpret_cast<const abi::PathStretch *>(plan + sections.stretches),
          .stretchBegin = reinterpret_cast<const int *>(plan + sections.stretchBegin),
          .pageTable = nullptr, // comes with a run, and only the kernel that selects asks for it
          .positions = positions_.as<int>(),
          .places = places_.as<int>(),
          .counts = counts_.as<int>(),
          .worthStride = worthStride(room.positions),
          .budget = split_.budget};
}

void PlanSelecting::write(const SelectingTables &tables, const PlanRoom &room, const PlanSections &sections,
                          std::byte *onDevice, std::byte *to) const {
  const auto copy = [&](std::size_t section, const auto &values) {
    if (!values.empty())
      std::memcpy(to + section, values.data(), values.size() * sizeof(values[0]));
  };
  const auto ints = [&](std::size_t section) { return reinterpret_cast<int *>(to + section); };
  const abi::Selected selected = selectedAt(room, sections, onDevice);
  std::memcpy(to + sections.selected, &selected, sizeof selected);
  copy(sections.stretches, tables.stretches);
  const int queries = static_cast<int>(tables.stretchBegin.size()) - 1;
  copy(sections.stretchBegin, tables.stretchBegin); // queries that there is room for have no path
  std::fill(ints(sections.stretchBegin) + queries + 1, ints(sections.stretchBegin) + room.queries + 1,
            tables.stretchBegin.back());
  copy(sections.sparseItems, tables.items);
  const std::size_t itemBytes = tables.items.size() * sizeof(abi::Item); // one of no tokens ends the list
  std::memset(to + sections.sparseItems + itemBytes, 0,
              static_cast<std::size_t>(room.sparseItems) * sizeof(abi::Item) - itemBytes);
  const int merged = tables.parts > 1 ? queries : 0; // and a query of -1
  int *const query = ints(sections.sparseMergeQuery), *const begin = ints(sections.sparseMergeBegin);
  std::iota(query, query + merged, 0);
  std::fill(query + merged, query + room.queries, -1);
  for (int q = 0; q <= merged; ++q)
    begin[q] = q * tables.parts;
  std::iota(ints(sections.sparseMergeSlot), ints(sections.sparseMergeSlot) + room.sparseItems, 0);
}

Result<void> PlanSelecting::select(const CudaKernels &kernels, int queries, const PlanRoom &room,
                                   const PlanSections &sections, std::byte *plan, const int *pageTable,
                                   cu::Stream stream) const {
  const SelectingCudaKernels &own = *kernels.selecting();
  const spec::SelectSpec &select = *kernels.variant().select;
  abi::SelectArgs args{selectedAt(room, sections, plan), queries, select.keepFirst, select.keepLast};
  args.selected.pageTable = pageTable;
  void *params[] = {&args};
  const int blocks = queries * lists_ * own.blocksOfList();
  return own.select().launchClusters(static_cast<unsigned>(blocks), own.blocksOfList(), params, stream);
}

Result<void> PlanSelecting::read(int queries, Selection &selection) const {
  selection.resize(queries, lists_, split_.budget);
  return support::inOrder(
      [&] {
        return positions_.download(selection.positions.data(), selection.positions.size() * sizeof(int));
      },
      [&] { return counts_.download(selection.counts.data(), selection.counts.size() * sizeof(int)); });
}

} // namespace deft::exec
