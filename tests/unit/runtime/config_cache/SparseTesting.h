#pragma once

#include "runtime/config_cache/SparseEntry.h"
#include "tests/support/VariantBuilder.h"

/// Entries of sparse layers, and what they are of.
namespace deft::config_cache {

/// An attention that selects, and its signature.
inline spec::Variant selectingVariant(std::vector<int> budgets = {4096}) {
  spec::Variant variant = test::VariantBuilder(32, 8, 128).variant;
  variant.name = "selecting";
  variant.cache.pageSize = 16;
  variant.select.emplace().budget.values = std::move(budgets);
  return variant;
}

/// Tuned with today's kernels, by a tile that is not the rule's.
inline SparseEntry someSparseEntry(int budget = 4096, int tileKv = 128) {
  SparseEntry entry;
  entry.signature = VariantSignature::of(selectingVariant());
  entry.budget = budget;
  entry.tileKv = tileKv;
  entry.stages = 2;
  entry.warps = 4;
  entry.isChosen = true;
  entry.cuts = {{1, 128, 12.5, 13.25, 0.01}, {8, 0, 30, 30.5, 0.02}, {16, 1024, 55, 60, 0}};
  entry.provenance = {"0.2.0", sparseKernelHash(), "2026-11-27T08:30:00Z", "CUDA 13.0", ""};
  return entry;
}

} // namespace deft::config_cache
