#pragma once

#include "compiler/spec/Variant.h"

#include <cstdint>

namespace deft::plan {

/// All that a plan needs to know of a variant.
struct VariantFacts {
  int ratio = 1; ///< query heads to a KV head: rows of a query in an item
  int kvHeads = 1;
  // What bytes and products are counted by; the work list itself does not depend on them:
  int headDim = 128;
  int elementBytes = 2; ///< of q, k, v and the output

  static VariantFacts of(const spec::Variant &variant) {
    return {variant.ratio(), variant.kvHeads, variant.headDim, 2};
  }
};

/// Bytes of one partial row: float32 values and the log-sum-exp.
inline std::int64_t partialRowBytes(const VariantFacts &facts) {
  return 4 * (std::int64_t{facts.headDim} + 1);
}

} // namespace deft::plan
