#include "runtime/exec/cuda/PlanSelecting.h"

#include "compiler/support/InOrder.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace deft::exec {

using support::Error;
using support::ErrorCode;
using support::Result;

Result<PlanSelecting> PlanSelecting::create(const CudaKernels &kernels, int budget, bool isInvariant,
                                            double listOverlap, const std::vector<config::SparseCut> *cuts) {
  const std::string name = kernels.variant().called();
  if (!kernels.variant().select)
    return Error{ErrorCode::Usage, name + " selects nothing",
                 "write `select { budget = 4096; }` in the spec"};
  const SelectingCudaKernels *selecting = kernels.selecting();
  if (!selecting)
    return Error{ErrorCode::Usage, "the kernels of " + name + " do not select",
                 "the package is from before GPUs selected: build it again"};
  std::vector<config::SparseCut> tuned;
  for (const config::SparseCut &cut : cuts ? *cuts : selecting->sparseCuts())
    if (cut.budget == budget)
      tuned.push_back(cut);
  return PlanSelecting(
      kernels, {.budget = budget,
                .tileTokens = selecting->sparsePhase().tileKv,
                .blocksOfItem = selecting->sparseUnits(),
                .blocksAtOnce = selecting->sparse().blocksAtOnce(),
                .isInvariant = isInvariant,
                .unions = isInvariant ? UnionShape{} : selecting->unionShape().with(budget, listOverlap),
                .tuned = std::move(tuned)});
}

int PlanSelecting::mostCounted() const {
  constexpr std::int64_t kMost = 1 << 30;
  return static_cast<int>(kMost / (std::int64_t{lists_} * split_.budget));
}

void PlanSelecting::completeRoom(PlanRoom &room) const {
  room.budget = split_.budget;
  room.sparseItems = split_.mostItems(room.queries);
  room.unitedQueries =
      split_.unions.queries > 0 ? std::min({room.unitedQueries, room.queries, mostCounted()}) : 0;
  room.unitedItems = split_.unions.mostItems(room.unitedQueries);
  room.sparsePartials = room.sparseItems + split_.unions.mostPartials(room.unitedQueries);
}

Result<void> PlanSelecting::reserve(const RoomBytes &bytes) {
  auto reserved =
      support::inOrder([&] { return positions_.reserve(bytes.lists, "the lists of tokens"); },
                       [&] { return places_.reserve(bytes.lists, "the places of lists of tokens"); },
                       [&] { return counts_.reserve(bytes.counts, "the lengths of lists of tokens"); },
                       [&] { return unionPositions_.reserve(bytes.unions, "unions of lists"); },
                       [&] { return unionPlaces_.reserve(bytes.unions, "the places of unions"); },
                       [&] { return unionReaders_.reserve(bytes.unions, "the readers of unions"); },
                       [&] { return unionCounts_.reserve(bytes.unionCounts, "the lengths of unions"); });
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

abi::Unions PlanSelecting::unionsAt(const PlanSections &sections, std::byte *plan) const {
  return {.unions = reinterpret_cast<const abi::Union *>(plan + sections.unions),
          .positions = unionPositions_.as<int>(),
          .places = unionPlaces_.as<int>(),
          .readers = unionReaders_.as<unsigned>(),
          .counts = unionCounts_.as<int>(),
          .callerIndex = reinterpret_cast<const int *>(plan + sections.callerIndex)};
}

void PlanSelecting::write(const SelectingTables &tables, const PlanRoom &room, const PlanSections &sections,
                          std::byte *onDevice, std::byte *to) const {
  const auto copy = [&](std::size_t section, const auto &values) {
    if (!values.empty())
      std::memcpy(to + section, values.data(), values.size() * sizeof(values[0]));
  };
  const auto ints = [&](std::size_t section) { return reinterpret_cast<int *>(to + section); };
  const abi::Selected selected = selectedAt(room, sections, onDevice);
  const abi::Unions unions = unionsAt(sections, onDevice);
  std::memcpy(to + sections.selected, &selected, sizeof selected);
  std::memcpy(to + sections.selected + sizeof selected, &unions, sizeof unions);
  copy(sections.stretches, tables.stretches);
  const int queries = static_cast<int>(tables.stretchBegin.size()) - 1;
  copy(sections.stretchBegin, tables.stretchBegin); // queries that there is room for have no path
  std::fill(ints(sections.stretchBegin) + queries + 1, ints(sections.stretchBegin) + room.queries + 1,
            tables.stretchBegin.back());
  const auto copyEnded = [&](std::size_t section, const auto &values, int most) { // by one that is all 0
    copy(section, values);
    const std::size_t one = sizeof(values[0]);
    std::memset(to + section + values.size() * one, 0,
                (static_cast<std::size_t>(most) - values.size()) * one);
  };
  copyEnded(sections.sparseItems, tables.items, room.sparseItems);
  copyEnded(sections.unions, tables.unions, room.unions() + 1);
  copyEnded(sections.unitedItems, tables.unitedItems, room.unitedItems);
  copy(sections.sparseMergeQuery, tables.mergeQuery); // and a query of -1
  const std::size_t merged = tables.mergeQuery.size();
  std::fill(ints(sections.sparseMergeQuery) + merged, ints(sections.sparseMergeQuery) + room.queries, -1);
  copy(sections.sparseMergeBegin, tables.mergeBegin);
  copy(sections.sparseMergeSlot, tables.mergeSlot);
}

void PlanSelecting::point(const PlanSections &sections, std::byte *plan, abi::AttendArgs &attend) const {
  if (!split_.unions.writesItems)
    return;
  attend.runs =
      reinterpret_cast<const abi::Run *>(plan + sections.selected + sizeof(abi::Selected)); // abi::Unions
  attend.pageTable = unionPlaces_.as<int>();
}

Result<void> PlanSelecting::select(const CudaKernels &kernels, int queries, int unions, const PlanRoom &room,
                                   const PlanSections &sections, std::byte *plan, const int *pageTable,
                                   cu::Stream stream) const {
  const SelectingCudaKernels &own = *kernels.selecting();
  const spec::SelectSpec &select = *kernels.variant().select;
  abi::SelectArgs args{selectedAt(room, sections, plan), queries, select.keepFirst, select.keepLast};
  args.selected.pageTable = pageTable;
  void *params[] = {&args};
  auto selected = own.launchSelect(queries * lists_, room.positions, params, stream);
  return selected && unions > 0 ? unite(kernels, unions, sections, plan, pageTable, stream) : selected;
}

Result<void> PlanSelecting::unite(const CudaKernels &kernels, int unions, const PlanSections &sections,
                                  std::byte *plan, const int *pageTableOrLists, cu::Stream stream) const {
  const SelectingCudaKernels &own = *kernels.selecting();
  abi::UniteArgs unite{.selected = reinterpret_cast<const abi::Selected *>(plan + sections.selected),
                       .unions = unionsAt(sections, plan),
                       .pageTable = pageTableOrLists,
                       .items = split_.unions.writesItems
                                    ? reinterpret_cast<abi::Item *>(plan + sections.unitedItems)
                                    : nullptr};
  void *uniteParams[] = {&unite};
  return own.unite().launchClusters(static_cast<unsigned>(unions * lists_ * own.blocksOfUnion()),
                                    own.blocksOfUnion(), uniteParams, stream);
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
