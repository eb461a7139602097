#pragma once

#include "compiler/spec/Variant.h"

namespace deft::kernels {

/// What of a variant decides about its configs.
struct KernelShape : spec::AttentionShape {
  spec::HookSet has = {};
  int tokenParams = 0;        ///< arrays with one value for each token that is read
  bool listsAreGiven = false; ///< sparse runs are handed their lists: no kernel selects

  /// Units that an item has on a GPU: one for each KV head. A latent cache has one KV head, whose query heads
  /// are split into groups of at most kMostRowsOfLatent, each with a unit of its own.
  int unitsOfItem() const { return kvHeads * headGroups(); }
  int headGroups() const {
    int groups = tensors.valueInKey ? (ratio() + kMostRowsOfLatent - 1) / kMostRowsOfLatent : 1;
    while (ratio() % groups != 0)
      ++groups;
    return groups;
  }
  /// Rows that a query has in a unit.
  int rowsOfQuery() const { return queryHeads / unitsOfItem(); }
  /// The least multiple of 16 that holds all query heads of a KV head.
  int fewestRows() const { return (ratio() + 15) / 16 * 16; }

  static constexpr int kMostRowsOfLatent = 64;
  static KernelShape of(const spec::Variant &variant) {
    return {variant, spec::HookSet::of(variant), variant.tokenParams(), variant.readsGivenLists()};
  }
};

} // namespace deft::kernels
