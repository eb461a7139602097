#pragma once

#include "compiler/codegen/cpu/HookInliner.h"
#include "compiler/codegen/cpu/KernelEmitter.h"

namespace deft::codegen::cpu {

/// What hooks know of a row, whichever its elements.
struct RowFacts {
  mlir::Value qPos, query, head; ///< i32
  mlir::Value params;
};

/// `query` or `output` for one row.
class ElementHook {
public:
  /// `rms`, of the row: `query` alone has it.
  static mlir::FailureOr<ElementHook> prepare(const KernelContext &context, mlir::Region &region,
                                              const RowFacts &row, mlir::Value rms = {});

  /// Elements `dim` (i64), dim + 1, ... of the row, as many as a vector has; their partners, where `region`
  /// may ask.
  mlir::FailureOr<mlir::Value> apply(mlir::Value dim, mlir::Value x, mlir::Value xHalf = {},
                                     mlir::Value xPair = {}) const;

private:
  ElementHook(const KernelContext &context, InlinedHook hook) : context_(&context), hook_(std::move(hook)) {}

  const KernelContext *context_;
  InlinedHook hook_;
};

/// `query` for rows of q, one after the other, in memory of its function's. Made in the function's entry
/// block.
class QueryRows {
public:
  explicit QueryRows(const KernelContext &context);

  /// The address of the elements that the row at `from` becomes, in q's type; null after a reported
  /// diagnostic.
  mlir::Value transform(mlir::Value from, const RowFacts &row) const;

private:
  const KernelContext &context_;
  mlir::Value elements_; ///< as f32, twice one after the other: partners stand in a line
  mlir::Value made_;
};

} // namespace deft::codegen::cpu
