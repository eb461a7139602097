#include "compiler/transforms/Passes.h"
#include "compiler/transforms/Uniformity.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace deft::transforms {

using namespace mlir::arith;

namespace {
/// A soft cap divides every score by one number. An exact f32 division costs about ten instructions on a GPU
/// and a multiplication one; the reciprocal's rounding is far below that of the 16-bit inputs.
struct ReciprocalPass : mlir::PassWrapper<ReciprocalPass, mlir::OperationPass<dialect::AttentionOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ReciprocalPass)
  llvm::StringRef getArgument() const override { return "deft-reciprocal"; }
  llvm::StringRef getDescription() const override {
    return "divide by row-uniform values of the score through their reciprocal";
  }

  void runOnOperation() override {
    mlir::Region &score = getOperation().getScore();
    UniformityAnalysis uniformity(score);
    auto variesByColumn = [&](mlir::Value value) {
      return (static_cast<unsigned>(uniformity.of(value)) & static_cast<unsigned>(Uniformity::Column)) != 0;
    };
    for (DivFOp division : llvm::make_early_inc_range(score.getOps<DivFOp>())) {
      if (!variesByColumn(division.getLhs()) || variesByColumn(division.getRhs()))
        continue;
      mlir::OpBuilder builder(division);
      mlir::Location location = division.getLoc();
      mlir::Value one = ConstantOp::create(builder, location, builder.getF32FloatAttr(1));
      mlir::Value reciprocal = DivFOp::create(builder, location, one, division.getRhs());
      mlir::Value product = MulFOp::create(builder, location, division.getLhs(), reciprocal);
      division.replaceAllUsesWith(product);
      division.erase();
    }
  }
};
} // namespace

std::unique_ptr<mlir::Pass> createReciprocalPass() { return std::make_unique<ReciprocalPass>(); }

} // namespace deft::transforms
