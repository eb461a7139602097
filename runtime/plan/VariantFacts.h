#pragma once

#include "compiler/config/Config.h"
#include "compiler/kernels/KernelShape.h"
#include "compiler/spec/Variant.h"
#include "runtime/plan/Reach.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace deft::plan {

/// All that a plan needs to know of a variant.
struct VariantFacts {
  int ratio = 1;   ///< query heads of a unit: rows of a query in an item
  int kvHeads = 1; ///< units of an item: KV heads, or groups of the query heads of one
  // What bytes and products are counted by; the work list itself does not depend on them:
  spec::Tensors tensors = spec::Tensors::alike(128);
  int partialBytes = 2;   ///< of a partial's value: f16 or bf16 (deft::Partial), float32 on a CPU
  bool makesKeys = false; ///< a GPU's kernels make keys by a hook, tile by tile
  /// Tokens of a page in a GPU's cache; 0: it is contiguous, or not to be asked for. Where a copy engine
  /// takes pieces of pages, they come first in items (RunOrder); prices do not depend on it.
  int pageSize = 0;
  /// What is hidden from all is not planned, in steps of so many locations, a power of two: a divisor of
  /// pages, so that no page is read of which nothing is seen.
  int trimStep = 1;
  int headGroups = 1; ///< of the query heads of a KV head (kernels::KernelShape)
  Reach reach = {};   ///< of the mask, with the values that parameters have where they are known
  /// Some hook or bound asks where a token stands on its path. Else tokens of a rank that follow each other
  /// in its cache are one run, whatever lies between them.
  bool readsKvPos = true;

  /// The facts with the defaults of parameters; below, with what the mask shows by other values.
  static VariantFacts of(const spec::Variant &variant, config::DeviceKind device = config::DeviceKind::Gpu) {
    return of(variant, device, Reach::ofDefaults(variant));
  }
  static VariantFacts of(const spec::Variant &variant, config::DeviceKind device, Reach reach) {
    const bool isGpu = device == config::DeviceKind::Gpu;
    // Copy engines take tokens in groups; processors lose nothing by the exact beginning.
    constexpr int kGroup = 16;
    const int page = variant.cache.paged ? variant.cache.pageSize : kGroup;
    const auto shape = kernels::KernelShape::of(variant);
    const int headGroups = isGpu ? shape.headGroups() : 1;
    return {.ratio = shape.ratio() / headGroups,
            .kvHeads = shape.kvHeads * headGroups,
            .tensors = variant.tensors,
            .partialBytes = isGpu ? 2 : 4,
            .makesKeys = isGpu && variant.key.has_value(),
            .pageSize = isGpu && variant.cache.paged ? variant.cache.pageSize : 0,
            .trimStep = isGpu ? std::min(kGroup, page & -page) : 1,
            .headGroups = headGroups,
            .reach = std::move(reach),
            .readsKvPos = reads(variant, spec::Builtin::KvPos)};
  }
  static bool reads(const spec::Variant &variant, spec::Builtin builtin) {
    return std::any_of(variant.exprs.begin(), variant.exprs.end(), [&](const spec::Expr &expr) {
      return expr.op == spec::ExprOp::Builtin && expr.builtin == builtin;
    });
  }
  /// Bytes that a token has in the cache, those of all KV heads.
  std::int64_t tokenBytes() const { return std::int64_t{kvHeads / headGroups} * tensors.cacheBytes(); }
  /// For plans in path order, which have the fewest runs and cost no less by any price.
  VariantFacts withoutPages() const {
    VariantFacts facts = *this;
    facts.pageSize = 0;
    return facts;
  }
};

/// Bytes of one partial row: values and the log-sum-exp, a float32.
inline std::int64_t partialRowBytes(const VariantFacts &facts) {
  return std::int64_t{facts.tensors.out.dim} * facts.partialBytes + 4;
}

} // namespace deft::plan
