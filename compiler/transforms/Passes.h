#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>

namespace deft::transforms {

/// deft-reciprocal: in `score`, a division by what is the same for a whole row becomes a product with its
/// reciprocal, which is computed once. Costs one rounding; `mask` is left exact.
std::unique_ptr<mlir::Pass> createReciprocalPass();

/// deft-tile-analysis: makes the region `tile` from `mask` by interval arithmetic.
std::unique_ptr<mlir::Pass> createTileAnalysisPass();

/// deft-annotate-uniformity: writes the uniformity of every operation as an attribute, for a reader.
std::unique_ptr<mlir::Pass> createAnnotateUniformityPass();

/// All of the above, with canonicalisation and CSE between: imported IR becomes what back ends take.
void buildOptimizePipeline(mlir::OpPassManager &manager);

/// Runs the pipeline; a failure has been reported to the context's diagnostics.
mlir::LogicalResult optimize(mlir::ModuleOp module);

/// Makes the passes and `deft-optimize` known to a command line.
void registerPasses();

} // namespace deft::transforms
