#pragma once

#include "compiler/codegen/cpu/Emitter.h"

#include "mlir/IR/IRMapping.h"

namespace deft::codegen::cpu {

/// A region of deft.attention, inlined in two steps: what depends on the row alone stands before the loop
/// over tokens, the rest inside it. Arguments are scalars or vectors; an op is widened exactly when an
/// operand is. Functions of the math dialect become arithmetic (VectorMath.h).
///
/// An op that the inliner does not know is reported at its location, through the context's diagnostics, and
/// gives failure.
class InlinedHook {
public:
  /// Emits at the builder's place what needs no argument that is null in `arguments`. `params` is the address
  /// of the parameter slots.
  static mlir::FailureOr<InlinedHook> prepare(Emitter &e, dialect::AttentionOp attention,
                                              mlir::Region &region, llvm::ArrayRef<mlir::Value> arguments,
                                              mlir::Value params);
  /// Emits the rest and gives what the region yields: `arguments` holds those that were null. A yielded value
  /// that follows from scalars alone is a scalar.
  /// `tokens` gives, of an array over tokens, the elements of those at hand, those of the KV head at hand
  /// where each has one; null: the region reads none.
  using TokenElements =
      llvm::function_ref<mlir::Value(mlir::Type element, mlir::Value array, bool isOfHeads)>;
  mlir::FailureOr<llvm::SmallVector<mlir::Value>> apply(Emitter &e, llvm::ArrayRef<mlir::Value> arguments,
                                                        TokenElements tokens = nullptr) const;

private:
  dialect::AttentionOp attention_;
  mlir::Value params_;
  mlir::Region *region_ = nullptr;
  mlir::IRMapping mapping_;
};

/// Both steps at one place.
mlir::FailureOr<llvm::SmallVector<mlir::Value>> inlineHook(Emitter &e, dialect::AttentionOp attention,
                                                           mlir::Region &region,
                                                           llvm::ArrayRef<mlir::Value> arguments,
                                                           mlir::Value params);

} // namespace deft::codegen::cpu
