#pragma once

#include "compiler/dialect/Deft.h"

namespace deft::codegen::cuda {

/// The values that the hooks of a region read from `struct Row`: those that are the same for all tokens of a
/// row, and that an operation reads which depends on the token. Constants, scalar parameters and the KV head
/// are not stored, because they are cheap to get and a row's registers are scarce.
llvm::SmallVector<mlir::Value> rowValues(mlir::Region &hook);

} // namespace deft::codegen::cuda
