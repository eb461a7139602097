#pragma once

#include "runtime/exec/Selection.h"
#include "runtime/exec/cuda/CudaKernels.h"
#include "runtime/exec/cuda/PlanRoom.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace deft::exec {

namespace cu = device::cu;

/// The memory in which runs of a plan select: what tokens are worth, and the lists, which stay until the next
/// run that selects.
class PlanSelecting {
public:
  /// An error where these kernels do not select. `listOverlap`: UnionShape::overlap. `cuts` are in place of
  /// those that they were loaded with; null: these.
  static support::Result<PlanSelecting> create(const CudaKernels &kernels, int budget, bool isInvariant,
                                               double listOverlap = 0,
                                               const std::vector<config::SparseCut> *cuts = nullptr);

  const SparseSplit &split() const { return split_; }
  /// Of which at most so many queries may be in unions.
  SelectingTables tablesOf(const plan::Plan &plan, int mostUnited) {
    return selectingTables(plan, split_, std::min(mostUnited, mostCounted()), paths_);
  }

  /// What the room says of selection, which follows from its queries, and from how many of them may be in
  /// unions.
  void completeRoom(PlanRoom &room) const;

  /// Memory for all that the room allows.
  support::Result<void> reserve(const RoomBytes &bytes);

  /// Writes the sections of a plan that selects, which will lie at `onDevice`.
  void write(const SelectingTables &tables, const PlanRoom &room, const PlanSections &sections,
             std::byte *onDevice, std::byte *to) const;

  /// Makes the lists of so many queries out of what their tokens are worth, and so many unions of them.
  support::Result<void> select(const CudaKernels &kernels, int queries, int unions, const PlanRoom &room,
                               const PlanSections &sections, std::byte *plan, const int *pageTable,
                               cu::Stream stream) const;
  /// Makes so many unions of lists: of those that are selected, whose tokens lie where the page table says,
  /// or of a caller's.
  support::Result<void> unite(const CudaKernels &kernels, int unions, const PlanSections &sections,
                              std::byte *plan, const int *pageTableOrLists, cu::Stream stream) const;
  /// What attend kernels of unions ask for beside what those of lists do.
  void point(const PlanSections &sections, std::byte *plan, abi::AttendArgs &attend) const;

  /// Copies the lists of so many queries to the host. What makes them must be done.
  support::Result<void> read(int queries, Selection &selection) const;

private:
  PlanSelecting(const CudaKernels &kernels, SparseSplit split)
      : lists_(kernels.variant().lists()), split_(std::move(split)), worth_(kernels.device()),
        positions_(kernels.device()), places_(kernels.device()), counts_(kernels.device()),
        unionPositions_(kernels.device()), unionPlaces_(kernels.device()), unionReaders_(kernels.device()),
        unionCounts_(kernels.device()) {}
  /// Queries in unions, at most: kernels count these tokens in 32 bits.
  int mostCounted() const;
  abi::Unions unionsAt(const PlanSections &sections, std::byte *plan) const;
  abi::Selected selectedAt(const PlanRoom &room, const PlanSections &sections, std::byte *plan) const;

  int lists_; ///< of a query
  SparseSplit split_;
  plan::Paths paths_;
  std::size_t worthBytes_ = 0; ///< of which all are of hidden tokens, while no run is under way
  device::Buffer worth_, positions_, places_, counts_;
  device::Buffer unionPositions_, unionPlaces_, unionReaders_, unionCounts_;
};

} // namespace deft::exec
