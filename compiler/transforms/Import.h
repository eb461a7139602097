#pragma once

#include "compiler/dialect/Deft.h"
#include "compiler/spec/Variant.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace deft::transforms {

/// Where a stretch of the spec lies, as MLIR says it; see locateIn for the usual one.
using Locate = llvm::function_ref<mlir::Location(support::SourceRange)>;

/// Appends `variant` to a module as a deft.attention with regions `mask` and `score`; a sigmoid's bias is
/// added in `score`. Every Expr becomes one operation or a few; nothing is simplified here.
///
/// What the language promises is made explicit: `x % 0` and `x % -1` are 0, `min` and `max` give the operand
/// that is not NaN, `!=` of a NaN is true and every other comparison with it false.
dialect::AttentionOp importVariant(mlir::ModuleOp module, const spec::Variant &variant, Locate locate);

/// Loads what imported IR needs into a context.
void loadDialects(mlir::MLIRContext &context);

} // namespace deft::transforms
