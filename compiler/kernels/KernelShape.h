#pragma once

#include "compiler/spec/Variant.h"

namespace deft::kernels {

/// What of a variant decides about its configs.
struct KernelShape {
  int queryHeads = 0;
  int kvHeads = 0;
  spec::Tensors tensors;
  bool hasKeyHook = false;     ///< K is not multiplied as it lies in the cache
  int tokenParams = 0;         ///< arrays over tokens, of which each token that is read has a value
  bool hasValueFactor = false; ///< V is not summed up by the weights alone

  int ratio() const { return queryHeads / kvHeads; }
  /// The least multiple of 16 that holds the rows of one query.
  int fewestRows() const { return (ratio() + 15) / 16 * 16; }
  static KernelShape of(const spec::Variant &variant) {
    return {variant.queryHeads,      variant.kvHeads,       variant.tensors,
            variant.key.has_value(), variant.tokenParams(), variant.valueFactor.has_value()};
  }
};

} // namespace deft::kernels
