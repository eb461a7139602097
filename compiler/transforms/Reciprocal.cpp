#include "compiler/transforms/Passes.h"
#include "compiler/transforms/Uniformity.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace deft::transforms {

using namespace mlir::arith;

#define GEN_PASS_DEF_RECIPROCALPASS
#include "compiler/transforms/Passes.h.inc"

namespace {
struct ReciprocalPass : impl::ReciprocalPassBase<ReciprocalPass> {
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

} // namespace deft::transforms
