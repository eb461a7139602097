#include "runtime/config_cache/SparseTuning.h"

#include "compiler/kernels/SparsePhase.h"

#include <algorithm>
#include <set>

namespace deft::config_cache {

namespace {

/// Of those that may be compiled; none: the tile is not among them.
std::optional<config::PhaseConfig> legalPhase(const SparseEntry &entry, const spec::Variant &variant,
                                              const target::Target &target) {
  for (const config::PhaseConfig &phase : kernels::sparsePhases(kernels::KernelShape::of(variant), target))
    if (entry.isOf(phase))
      return phase;
  return {};
}

} // namespace

bool isLegal(const SparseEntry &entry, const target::Target &target) {
  return legalPhase(entry, entry.signature.variant(), target).has_value();
}

const LoadedSparseEntry *SparseTuning::chosenFor(const spec::Variant &variant,
                                                 const target::Target &target) const {
  if (!variant.select)
    return nullptr;
  for (const int budget : variant.select->budget.values)
    for (const LoadedSparseEntry &loaded : entries_)
      if (loaded.entry.isChosen && loaded.entry.budget == budget && loaded.entry.isFresh() &&
          loaded.entry.isOf(variant) && legalPhase(loaded.entry, variant, target))
        return &loaded;
  return nullptr;
}

std::optional<config::PhaseConfig> SparseTuning::phaseFor(const spec::Variant &variant,
                                                          const target::Target &target) const {
  const LoadedSparseEntry *chosen = chosenFor(variant, target);
  return chosen ? legalPhase(chosen->entry, variant, target) : std::nullopt;
}

const LoadedSparseEntry *SparseTuning::findFor(const spec::Variant &variant, int budget,
                                               const config::PhaseConfig &tile) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const LoadedSparseEntry &loaded) {
    const SparseEntry &entry = loaded.entry;
    return entry.budget == budget && entry.isOf(tile) && entry.isFresh() && entry.isOf(variant);
  });
  return found == entries_.end() ? nullptr : &*found;
}

std::vector<config::SparseCut> SparseTuning::cutsFor(const spec::Variant &variant,
                                                     const package::KernelSet &kernels) const {
  std::vector<config::SparseCut> cuts;
  if (!kernels.selecting)
    return cuts;
  std::set<int> budgets;
  for (const LoadedSparseEntry &loaded : entries_)
    budgets.insert(loaded.entry.budget);
  for (const int budget : budgets)
    if (const LoadedSparseEntry *found = findFor(variant, budget, kernels.selecting->sparsePhase))
      for (const TimedCut &cut : found->entry.cuts)
        cuts.push_back({budget, cut.queries, cut.itemTokens});
  return cuts;
}

} // namespace deft::config_cache
