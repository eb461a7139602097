#pragma once

#include "compiler/dialect/Deft.h"
#include "compiler/spec/Variant.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace deft::transforms {

/// Turns a stretch of the spec into an MLIR location; locateIn makes the usual one.
using Locate = llvm::function_ref<mlir::Location(support::SourceRange)>;

/// Appends `variant` to a module as a deft.attention with regions `mask` and `score`; `score` adds a
/// sigmoid's bias. Every Expr becomes one or a few operations; nothing is simplified here.
///
/// Promises of the language become explicit: `x % 0` and `x % -1` are 0, `min` and `max` give the operand
/// that is not NaN, `!=` with a NaN is true, and every other comparison with it is false.
dialect::AttentionOp importVariant(mlir::ModuleOp module, const spec::Variant &variant, Locate locate);

/// Loads the dialects of imported IR into a context.
void loadDialects(mlir::MLIRContext &context);

} // namespace deft::transforms
