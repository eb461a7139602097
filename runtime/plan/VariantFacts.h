#pragma once

#include "compiler/config/Config.h"
#include "compiler/kernels/KernelShape.h"
#include "compiler/spec/Variant.h"
#include "runtime/plan/Reach.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace deft::plan {

/// The properties of a variant that plans depend on.
struct VariantFacts {
  int ratio = 1;   ///< query heads of a unit: the rows of one query in an item
  int kvHeads = 1; ///< units of an item: KV heads, or groups of one head's query heads
  // For counting bytes and products; the work list does not depend on these:
  spec::Tensors tensors = spec::Tensors::alike(128);
  int partialBytes = 2;   ///< one value of a partial: f16 or bf16 (deft::Partial); on a CPU float32
  bool makesKeys = false; ///< a GPU's kernels make keys with a hook, one tile at a time
  /// Tokens of a page of a GPU's cache; 0: contiguous, or pages do not matter. Copy engines may copy pieces
  /// of pages: then RunOrder puts these first in an item. Prices do not depend on it.
  int pageSize = 0;
  /// Plans omit tokens that are hidden from all queries in steps of this many locations: a power of two that
  /// divides the page size, so plans never name a page without visible tokens.
  int trimStep = 1;
  int headGroups = 1; ///< for the query heads of one KV head (kernels::KernelShape)
  Reach reach = {};   ///< of the mask, with the values of those parameters that are known
  /// A hook or bound reads the position of a token on its path. If none does, tokens that are consecutive in
  /// a rank's cache form one run even if other ranks hold tokens between them.
  bool readsKvPos = true;

  /// The facts with default parameters; the overload takes the reach of the mask for other values.
  static VariantFacts of(const spec::Variant &variant, config::DeviceKind device = config::DeviceKind::Gpu) {
    return of(variant, device, Reach::ofDefaults(variant));
  }
  static VariantFacts of(const spec::Variant &variant, config::DeviceKind device, Reach reach) {
    const bool isGpu = device == config::DeviceKind::Gpu;
    // Copy engines move groups of tokens; processors can begin at any token without loss.
    constexpr int kGroup = 16;
    const int page = variant.cache.isPaged() ? variant.cache.pageSize : kGroup;
    const auto shape = kernels::KernelShape::of(variant);
    const int headGroups = isGpu ? shape.headGroups() : 1;
    return {.ratio = shape.ratio() / headGroups,
            .kvHeads = shape.kvHeads * headGroups,
            .tensors = variant.tensors,
            .partialBytes = isGpu ? 2 : 4,
            .makesKeys = isGpu && variant.key.has_value(),
            .pageSize = isGpu ? variant.cache.pageSize : 0,
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
  /// Bytes of one token in the cache, over all KV heads.
  std::int64_t tokenBytes() const { return std::int64_t{kvHeads / headGroups} * tensors.cacheBytes(); }
  /// For plans in path order, which have the fewest runs and cost no more by any price.
  VariantFacts withoutPages() const {
    VariantFacts facts = *this;
    facts.pageSize = 0;
    return facts;
  }
};

/// Bytes of one partial row: its values and the log-sum-exp, a float32.
inline std::int64_t partialRowBytes(const VariantFacts &facts) {
  return std::int64_t{facts.tensors.out.dim} * facts.partialBytes + 4;
}

} // namespace deft::plan
