#include "compiler/dialect/Deft.h"
#include "compiler/transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

/// Runs passes on the text form of the dialect: for tests, and for looking at one pass alone.
int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<deft::dialect::DeftDialect, mlir::arith::ArithDialect, mlir::math::MathDialect>();
  mlir::registerTransformsPasses();
  deft::transforms::registerPasses();
  return mlir::failed(mlir::MlirOptMain(argc, argv, "deft-opt: runs deft's passes\n", registry));
}
