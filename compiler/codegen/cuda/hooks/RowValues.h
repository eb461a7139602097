#pragma once

#include "compiler/dialect/Deft.h"

namespace deft::codegen::cuda {

/// What the hooks of a region take from `struct Row`: values that are the same for all tokens of a row, at
/// the places where something that varies with the token reads them. Constants, scalar parameters and the KV
/// head stay out: they are at hand, and a row's registers are dear.
llvm::SmallVector<mlir::Value> rowValues(mlir::Region &hook);

} // namespace deft::codegen::cuda
