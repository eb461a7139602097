#include "compiler/codegen/cuda/hooks/RowValues.h"

#include "compiler/transforms/Uniformity.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SetVector.h"

namespace deft::codegen::cuda {

using namespace mlir;
using transforms::Uniformity;

llvm::SmallVector<Value> rowValues(Region &hook) {
  llvm::SetVector<Value> values;
  if (hook.empty())
    return {};
  transforms::UniformityAnalysis uniformity(hook);
  auto isRowLevel = [&](Value value) {
    Uniformity of = uniformity.of(value);
    return of == Uniformity::Launch || of == Uniformity::Row;
  };
  auto isAtHand = [&](Value value) {
    if (isa<BlockArgument>(value))
      return uniformity.of(value) == Uniformity::Launch;
    return isa<arith::ConstantOp, dialect::ParamOp>(value.getDefiningOp());
  };
  for (Operation &op : hook.front()) {
    bool isReader = op.getNumResults() == 0 || !isRowLevel(op.getResult(0));
    for (Value operand : op.getOperands())
      if (isReader && isRowLevel(operand) && !isAtHand(operand))
        values.insert(operand);
  }
  return values.takeVector();
}

} // namespace deft::codegen::cuda
