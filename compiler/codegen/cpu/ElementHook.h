#pragma once

#include "compiler/codegen/cpu/HookInliner.h"
#include "compiler/codegen/cpu/KernelEmitter.h"

namespace deft::codegen::cpu {

/// The values of a row that a hook can read for any of its elements.
struct RowFacts {
  mlir::Value qPos, query, head; ///< i32
  mlir::Value params;
};

/// The hook `query` or `output` for one row.
class ElementHook {
public:
  /// `rms` is the root mean square of the row; only `query` needs it.
  static mlir::FailureOr<ElementHook> prepare(const KernelContext &context, mlir::Region &region,
                                              const RowFacts &row, mlir::Value rms = {});

  /// Applies the hook to one vector: the elements from `dim` (i64) on. Partners are needed if `region` reads
  /// them.
  mlir::FailureOr<mlir::Value> apply(mlir::Value dim, mlir::Value x, mlir::Value xHalf = {},
                                     mlir::Value xPair = {}) const;

private:
  ElementHook(const KernelContext &context, InlinedHook hook) : context_(&context), hook_(std::move(hook)) {}

  const KernelContext *context_;
  InlinedHook hook_;
};

/// The hook `query` for rows of q, one after the other, in stack memory of its function. Construct it in the
/// function's entry block.
class QueryRows {
public:
  explicit QueryRows(const KernelContext &context);

  /// Transforms the row at `from`. Returns the address of the new elements, in q's type; null after a
  /// reported diagnostic.
  mlir::Value transform(mlir::Value from, const RowFacts &row) const;

private:
  const KernelContext &context_;
  mlir::Value elements_; ///< as f32, stored twice in a row, so that partners are consecutive
  mlir::Value made_;
};

} // namespace deft::codegen::cpu
