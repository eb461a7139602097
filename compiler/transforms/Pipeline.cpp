#include "compiler/dialect/Deft.h"
#include "compiler/transforms/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

namespace deft::transforms {

void buildOptimizePipeline(mlir::OpPassManager &manager) {
  auto simplify = [&] {
    manager.addPass(mlir::createCanonicalizerPass());
    manager.addPass(mlir::createCSEPass());
  };
  simplify();
  manager.addNestedPass<dialect::AttentionOp>(createReciprocalPass());
  manager.addNestedPass<dialect::AttentionOp>(createTileAnalysisPass());
  simplify();
}

mlir::LogicalResult optimize(mlir::ModuleOp module) {
  mlir::PassManager manager(module.getContext());
  buildOptimizePipeline(manager);
  return manager.run(module);
}

void registerPasses() {
  registerDeftPasses();
  mlir::PassPipelineRegistration<>("deft-optimize", "what the driver runs on imported IR",
                                   buildOptimizePipeline);
}

} // namespace deft::transforms
