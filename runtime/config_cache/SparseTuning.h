#pragma once

#include "compiler/config/SparseCut.h"
#include "compiler/package/KernelSet.h"
#include "compiler/target/Target.h"
#include "runtime/config_cache/SparseEntry.h"

#include <optional>
#include <string>
#include <vector>

namespace deft::config_cache {

/// Where a tuned tile or cut stands.
struct LoadedSparseEntry {
  SparseEntry entry;
  std::string path; ///< of its file
};

/// Whether the tile is among those that may be compiled for the target, by all that the entry knows of its
/// attention.
bool isLegal(const SparseEntry &entry, const target::Target &target);

/// What was tuned for the sparse layers of one device: the strongest entries first. What cannot be used, of
/// other kernels or with a tile that is not legal, is passed over.
class SparseTuning {
public:
  SparseTuning() = default;
  explicit SparseTuning(std::vector<LoadedSparseEntry> entries) : entries_(std::move(entries)) {}

  const std::vector<LoadedSparseEntry> &entries() const { return entries_; }

  /// The entry of the tile that a variant's kernel is compiled with, by the first of its budgets that has
  /// one: there is one such kernel, whatever the budget. Null: nothing was tuned, so it is
  /// kernels::sparsePhase().
  const LoadedSparseEntry *chosenFor(const spec::Variant &variant, const target::Target &target) const;
  /// Its shape.
  std::optional<config::PhaseConfig> phaseFor(const spec::Variant &variant,
                                              const target::Target &target) const;

  /// The entry for lists of so many tokens that are read by a kernel with this tile; null: there is none.
  const LoadedSparseEntry *findFor(const spec::Variant &variant, int budget,
                                   const config::PhaseConfig &tile) const;
  /// How lists of any budget are cut for the kernel that reads them: none where there is no such kernel.
  std::vector<config::SparseCut> cutsFor(const spec::Variant &variant,
                                         const package::KernelSet &kernels) const;

private:
  std::vector<LoadedSparseEntry> entries_;
};

} // namespace deft::config_cache
