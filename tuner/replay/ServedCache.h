#pragma once

#include "runtime/exec/Inputs.h"
#include "runtime/tree/CachePlacement.h"
#include "runtime/tree/SequenceTree.h"
#include "tuner/replay/TreeSteps.h"

#include <cstdint>
#include <span>
#include <vector>

namespace deft::replay {

/// The cache of a run of several steps, as a server keeps it. A SequenceTree follows the workload, its pool
/// gives the places of tokens, and the copies that it requests are made.
class ServedCache {
public:
  /// For `count` steps from the current one on. A first pass over them finds the size of the pool; afterwards
  /// `steps` is back where it was. `placement`: how the pool's pages are placed in memory.
  static support::Result<ServedCache> open(TreeSteps &steps, int count,
                                           const tree::PlacementOptions &placement);

  const tree::KvTree &tree() const { return sequences_.tree(); }
  /// Pages that the steps need (contiguous: tokens).
  std::int64_t pages() const { return pages_; }

  /// Checks arrays over tokens and queries: their sizes change from step to step.
  support::Result<void> checkParams(const spec::Variant &variant,
                                    const std::vector<exec::ParamValue> &params) const;

  /// Every slot has a value, used or not, and every query of any step has a row of q.
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
  std::vector<int> physical_; ///< the place of each page of the pool; empty without pages
};

} // namespace deft::replay
