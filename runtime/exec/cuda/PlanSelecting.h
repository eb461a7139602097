#pragma once

#include "runtime/exec/Selection.h"
#include "runtime/exec/cuda/CudaKernels.h"
#include "runtime/exec/cuda/PlanRoom.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace deft::exec {

namespace cu = device::cu;

/// Device memory for the selection of a plan's runs: the worth of tokens, and the lists, which stay until the
/// next selecting run.
class PlanSelecting {
public:
  /// An error where these kernels do not select. `listOverlap`: UnionShape::overlap. `cuts` are in place of
  /// those that they were loaded with; null: these.
  static support::Result<PlanSelecting> create(const CudaKernels &kernels, int budget, bool isInvariant,
                                               double listOverlap = 0,
                                               const std::vector<config::SparseCut> *cuts = nullptr);

  const SparseSplit &split() const { return split_; }
  /// The tables of a plan in which at most `mostUnited` queries may be in unions.
  SelectingTables tablesOf(const plan::Plan &plan, int mostUnited) {
    return selectingTables(plan, split_, std::min(mostUnited, mostCounted()), paths_);
  }

  /// Computes the counts of a room that concern selection, from its queries and the number of them that may
  /// be in unions.
  void completeRoom(PlanRoom &room) const;

  /// Reserves memory for everything that the room allows.
  support::Result<void> reserve(const RoomBytes &bytes);

  /// Writes the sections of a plan that selects; the device memory of the plan is at `onDevice`.
  void write(const SelectingTables &tables, const PlanRoom &room, const PlanSections &sections,
             std::byte *onDevice, std::byte *to) const;

  /// Makes the lists of the first `queries` queries from the tokens' worth, and `unions` unions of them.
  support::Result<void> select(const CudaKernels &kernels, int queries, int unions, const PlanRoom &room,
                               const PlanSections &sections, std::byte *plan, const int *pageTable,
                               cu::Stream stream) const;
  /// Makes so many unions of lists: of those that are selected, whose tokens lie where the page table says,
  /// or of a caller's.
  support::Result<void> unite(const CudaKernels &kernels, int unions, const PlanSections &sections,
                              std::byte *plan, const int *pageTableOrLists, cu::Stream stream) const;
  /// What attend kernels of unions ask for beside what those of lists do.
  void point(const PlanSections &sections, std::byte *plan, abi::AttendArgs &attend) const;

  /// Copies the lists of the first `queries` queries to the host. The kernels that make them must have ended.
  support::Result<void> read(int queries, Selection &selection) const;

private:
  PlanSelecting(const CudaKernels &kernels, SparseSplit split)
      : lists_(kernels.variant().lists()), split_(std::move(split)), worth_(kernels.device()),
        positions_(kernels.device()), places_(kernels.device()), counts_(kernels.device()),
        unionPositions_(kernels.device()), unionPlaces_(kernels.device()), unionReaders_(kernels.device()),
        unionCounts_(kernels.device()) {}
  /// The most queries in unions: kernels count the tokens of unions in 32 bits.
  int mostCounted() const;
  abi::Unions unionsAt(const PlanSections &sections, std::byte *plan) const;
  abi::Selected selectedAt(const PlanRoom &room, const PlanSections &sections, std::byte *plan) const;

  int lists_; ///< of one query
  SparseSplit split_;
  plan::Paths paths_;
  std::size_t worthBytes_ = 0; ///< all of them mark tokens as hidden, unless a run is in progress
  device::Buffer worth_, positions_, places_, counts_;
  device::Buffer unionPositions_, unionPlaces_, unionReaders_, unionCounts_;
};

} // namespace deft::exec
