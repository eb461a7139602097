#pragma once

#include "runtime/exec/Inputs.h"
#include "runtime/tree/CachePlacement.h"
#include "runtime/tree/SequenceTree.h"
#include "tuner/replay/TreeSteps.h"

#include <cstdint>
#include <span>
#include <vector>

namespace deft::replay {

/// The cache of a run of several steps, as a server keeps it: a SequenceTree follows the workload, its pool
/// says where tokens lie, and the copies that it asks for are made.
class ServedCache {
public:
  /// For `count` steps from the one at hand on. How large the pool gets is found by going through them once;
  /// afterwards `steps` is where it was. `placement` says how the pool's pages lie in memory.
  static support::Result<ServedCache> open(TreeSteps &steps, int count,
                                           const tree::PlacementOptions &placement);

  const tree::KvTree &tree() const { return sequences_.tree(); }
  /// Pages that the steps need (contiguous: tokens).
  std::int64_t pages() const { return pages_; }

  /// Whether arrays over tokens and queries can be given so: their sizes change from step to step.
  support::Result<void> checkParams(const spec::Variant &variant,
                                    const std::vector<exec::ParamValue> &params) const;

  /// Every slot has a value, whoever owns it, and there is a row of q for each query of any step.
  exec::Inputs makeInputs(const spec::Variant &variant, std::vector<exec::ParamValue> params,
                          std::uint64_t seed, int threads);

  /// Brings tree, page table and cache to the next step.
  support::Result<void> next(TreeSteps &steps, const spec::Variant &variant, exec::Inputs &inputs);

private:
  ServedCache(tree::SequenceTree sequences, const tree::PlacementOptions &placement)
      : sequences_(std::move(sequences)), options_(placement) {}

  static support::Result<ServedCache> follow(TreeSteps &steps, const tree::PlacementOptions &placement);
  support::Result<std::vector<tree::TokenCopy>> followStep(const TreeSteps &steps);
  void notePages(std::span<const tree::TokenCopy> copies);
  support::Result<void> placePool();
  void setPageTable(exec::Inputs &inputs) const;

  tree::SequenceTree sequences_;
  tree::PlacementOptions options_;
  std::int64_t pages_ = 0;
  std::size_t mostQueries_ = 0;
  tree::KvTree pool_; ///< a node that covers the pool, a query for each row of q
  tree::CachePlacement placement_;
  std::vector<int> physical_; ///< where each page of the pool lies; empty without pages
};

} // namespace deft::replay
