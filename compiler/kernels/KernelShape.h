#pragma once

#include "compiler/spec/Variant.h"

namespace deft::kernels {

/// The properties of a variant that decide about its configs.
struct KernelShape : spec::AttentionShape {
  spec::HookSet has = {};
  int tokenParams = 0;        ///< arrays with one value for each token that is read
  bool listsAreGiven = false; ///< callers give the lists: no kernel selects

  /// Units of an item on a GPU: one for each KV head. A latent cache has one KV head, whose query heads form
  /// groups of at most kMostRowsOfLatent; each group is a unit.
  int unitsOfItem() const { return kvHeads * headGroups(); }
  int headGroups() const {
    int groups = tensors.valueInKey ? (ratio() + kMostRowsOfLatent - 1) / kMostRowsOfLatent : 1;
    while (ratio() % groups != 0)
      ++groups;
    return groups;
  }
  /// Rows of one query in a unit.
  int rowsOfQuery() const { return queryHeads / unitsOfItem(); }
  /// The smallest multiple of 16 that holds all query heads of a KV head.
  int fewestRows() const { return (ratio() + 15) / 16 * 16; }

  static constexpr int kMostRowsOfLatent = 64;
  static KernelShape of(const spec::Variant &variant) {
    return {variant, spec::HookSet::of(variant), variant.tokenParams(), variant.readsGivenLists()};
  }
};

} // namespace deft::kernels
