#pragma once

#include "compiler/config/SparseCut.h"
#include "compiler/package/KernelSet.h"
#include "compiler/target/Target.h"
#include "runtime/config_cache/SparseEntry.h"

#include <optional>
#include <string>
#include <vector>

namespace deft::config_cache {

/// A tuned tile or cut, and its file.
struct LoadedSparseEntry {
  SparseEntry entry;
  std::string path; ///< of its file
};

/// Whether the tile may be compiled for the target, as far as the entry describes its
/// attention.
bool isLegal(const SparseEntry &entry, const target::Target &target);

/// The entries for the sparse layers of one device, the strongest first. Entries that cannot be used are
/// skipped: those of other kernels, or with a tile that is not legal.
class SparseTuning {
public:
  SparseTuning() = default;
  explicit SparseTuning(std::vector<LoadedSparseEntry> entries) : entries_(std::move(entries)) {}

  const std::vector<LoadedSparseEntry> &entries() const { return entries_; }

  /// The entry of the tile with which a variant's kernel is compiled. Since one kernel serves all budgets,
  /// this is the entry of the first budget that has one. Null: nothing was tuned, so kernels::sparsePhase()
  /// applies.
  const LoadedSparseEntry *chosenFor(const spec::Variant &variant, const target::Target &target) const;
  /// The shape of that tile.
  std::optional<config::PhaseConfig> phaseFor(const spec::Variant &variant,
                                              const target::Target &target) const;

  /// The entry for lists of this budget that a kernel with this tile reads; null: there is none.
  const LoadedSparseEntry *findFor(const spec::Variant &variant, int budget,
                                   const config::PhaseConfig &tile) const;
  /// How lists of each budget are cut for the kernel that reads them; empty if there is no such kernel.
  std::vector<config::SparseCut> cutsFor(const spec::Variant &variant,
                                         const package::KernelSet &kernels) const;

private:
  std::vector<LoadedSparseEntry> entries_;
};

} // namespace deft::config_cache
