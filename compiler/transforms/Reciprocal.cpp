#include "compiler/transforms/Passes.h"
#include "compiler/transforms/Uniformity.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/DenseSet.h"

namespace deft::transforms {

using namespace mlir::arith;

#define GEN_PASS_DEF_RECIPROCALPASS
#include "compiler/transforms/Passes.h.inc"

namespace {

bool isWholeOrBool(mlir::Operation &op) {
  return llvm::isa<mlir::math::FloorOp, FPToSIOp, CmpIOp, CmpFOp>(op);
}

/// Whether its results are off by their rounding error whatever its operands are.
bool isApproximate(mlir::Operation &op) {
  return op.getName().getDialectNamespace() == "math" &&
         !llvm::isa<mlir::math::FloorOp, mlir::math::AbsFOp, mlir::math::AbsIOp>(op);
}

/// Quotients whose last bit decides: by `floor`, a table's index or a comparison. 41 / 41 is 1, and 41 times
/// its reciprocal less than that.
class Steps {
public:
  explicit Steps(mlir::Region &score) {
    if (score.empty())
      return;
    approximate_.insert(score.getArgument(dialect::kArgS));
    for (mlir::Operation &op : score.front()) {
      const bool hasApproximate =
          llvm::any_of(op.getOperands(), [&](mlir::Value in) { return approximate_.contains(in); });
      if (isApproximate(op) || (hasApproximate && op.getNumResults() == 1 && !isWholeOrBool(op)))
        approximate_.insert(op.getResult(0));
    }
    for (mlir::Operation &op : llvm::reverse(score.front())) {
      const bool hasDeciding = op.getNumResults() == 1 && deciding_.contains(op.getResult(0));
      if (isWholeOrBool(op) || (hasDeciding && !isApproximate(op)))
        deciding_.insert(op.operand_begin(), op.operand_end());
    }
  }

  /// Of what is approximate before, as `s` and logarithms are, rounding decides anyway.
  bool decides(DivFOp division) const {
    return deciding_.contains(division.getResult()) && !approximate_.contains(division.getLhs());
  }

private:
  llvm::DenseSet<mlir::Value> approximate_, deciding_;
};

struct ReciprocalPass : impl::ReciprocalPassBase<ReciprocalPass> {
  void runOnOperation() override {
    mlir::Region &score = getOperation().getScore();
    UniformityAnalysis uniformity(score);
    const Steps steps(score);
    auto variesByColumn = [&](mlir::Value value) {
      return (static_cast<unsigned>(uniformity.of(value)) & static_cast<unsigned>(Uniformity::Column)) != 0;
    };
    // All are found before one is replaced: of new values nothing is known.
    llvm::SmallVector<DivFOp> divisions;
    for (DivFOp division : score.getOps<DivFOp>())
      if (variesByColumn(division.getLhs()) && !variesByColumn(division.getRhs()) && !steps.decides(division))
        divisions.push_back(division);
    for (DivFOp division : divisions) {
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
