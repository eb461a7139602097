#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>

namespace deft::transforms {

/// What Passes.td says: a function createXPass for each pass, and registerDeftPasses.
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/transforms/Passes.h.inc"

/// What makes imported IR into what back ends take: the passes that they need, with canonicalisation and CSE
/// between.
void buildOptimizePipeline(mlir::OpPassManager &manager);

/// Runs the pipeline; a failure has been reported to the context's diagnostics.
mlir::LogicalResult optimize(mlir::ModuleOp module);

/// Makes the passes and `deft-optimize` known to a command line.
void registerPasses();

} // namespace deft::transforms
