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
  int partialBytes = 2; ///< of a partial's value: f16 or bf16 (deft::Partial), float32 on a CPU
  /// Of a GPU's cache, 0: contiguous, or not to be asked for. Where a copy engine takes pieces of pages, they
  /// come first in items (RunOrder); prices do not depend on it.
  int pageSize = 0;

  static VariantFacts of(const spec::Variant &variant, bool isCpu = false) {
    return {variant.ratio(), variant.kvHeads,
            variant.headDim, 2,
            isCpu ? 4 : 2,   !isCpu && variant.cache.paged ? variant.cache.pageSize : 0};
  }
  /// For plans in path order, which have the fewest runs and cost no less by any price.
  VariantFacts withoutPages() const {
    VariantFacts facts = *this;
    facts.pageSize = 0;
    return facts;
  }
};

/// Bytes of one partial row: values and the log-sum-exp, a float32.
inline std::int64_t partialRowBytes(const VariantFacts &facts) {
  return std::int64_t{facts.headDim} * facts.partialBytes + 4;
}

} // namespace deft::plan
