#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>

namespace deft::transforms {

/// From Passes.td: a function createXPass for each pass, and registerDeftPasses.
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/transforms/Passes.h.inc"

/// The pipeline from imported IR to the IR that back ends take: the passes that they need, with
/// canonicalisation and CSE in between.
void buildOptimizePipeline(mlir::OpPassManager &manager);

/// Runs the pipeline. The context's diagnostics report a failure.
mlir::LogicalResult optimize(mlir::ModuleOp module);

/// Registers the passes and `deft-optimize` for a command line.
void registerPasses();

} // namespace deft::transforms
