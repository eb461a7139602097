#pragma once

#include "compiler/codegen/cpu/Emitter.h"

#include "mlir/IR/IRMapping.h"

namespace deft::codegen::cpu {

/// A region of deft.attention, inlined in two steps: ops that depend only on the row come before the loop
/// over tokens, the others inside it. Arguments are scalars or vectors; an op is widened exactly when an
/// operand is a vector. Functions of the math dialect become arithmetic (VectorMath.h).
///
/// For an op that it does not support, the inliner reports a diagnostic at the op's location and
/// fails.
class InlinedHook {
public:
  /// Emits, at the builder's place, all ops that do not need a null entry of `arguments`. `params` is the
  /// address of the parameter slots.
  static mlir::FailureOr<InlinedHook> prepare(Emitter &e, dialect::AttentionOp attention,
                                              mlir::Region &region, llvm::ArrayRef<mlir::Value> arguments,
                                              mlir::Value params);
  /// Emits the other ops and returns the values that the region yields. `arguments` holds the entries that
  /// were null. A yielded value that depends only on scalars is a scalar.
  /// `tokens` loads the elements of an array over tokens for the current tokens, and for the current KV head
  /// if each head has its own; null: the region reads no such array.
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
