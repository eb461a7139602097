#pragma once

#include "compiler/codegen/cpu/Emitter.h"

namespace deft::codegen::cpu {

/// Inlines a region of deft.attention at the builder's place and gives what it yields. Arguments are scalars
/// for a row or vectors for a stretch of tokens; an op is widened exactly when an operand is, so that what
/// depends on the row alone stays scalar and moves out of the token loop. Functions of the math dialect
/// become arithmetic (VectorMath.h).
///
/// `params` is the address of the parameter slots. An op that the inliner does not know is reported at its
/// location, through the context's diagnostics, and gives failure.
mlir::FailureOr<llvm::SmallVector<mlir::Value>> inlineHook(Emitter &e, dialect::AttentionOp attention,
                                                           mlir::Region &region, mlir::ValueRange arguments,
                                                           mlir::Value params);

} // namespace deft::codegen::cpu
