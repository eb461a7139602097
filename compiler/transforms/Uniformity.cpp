#include "compiler/transforms/Uniformity.h"

namespace deft::transforms {

static Uniformity ofArgument(unsigned argument) {
  switch (argument) {
  case dialect::kArgS:
    return Uniformity::Pair;
  case dialect::kArgQPos:
  case dialect::kArgHead:
  case dialect::kArgQuery:
    return Uniformity::Row;
  case dialect::kArgKvPos:
  case dialect::kArgDepth:
    return Uniformity::Column;
  default:
    return Uniformity::Launch;
  }
}

UniformityAnalysis::UniformityAnalysis(mlir::Region &hook) {
  if (hook.empty())
    return;
  for (mlir::BlockArgument argument : hook.getArguments())
    values_[argument] = ofArgument(argument.getArgNumber());
  for (mlir::Operation &op : hook.front()) {
    unsigned bits = llvm::isa<dialect::ParamOfTokenOp>(op) ? static_cast<unsigned>(Uniformity::Column) : 0;
    for (mlir::Value operand : op.getOperands())
      bits |= static_cast<unsigned>(of(operand));
    for (mlir::Value result : op.getResults())
      values_[result] = static_cast<Uniformity>(bits);
  }
}

llvm::StringRef uniformityName(Uniformity uniformity) {
  switch (uniformity) {
  case Uniformity::Launch:
    return "launch";
  case Uniformity::Row:
    return "row";
  case Uniformity::Column:
    return "column";
  case Uniformity::Pair:
    return "pair";
  }
  llvm_unreachable("unknown uniformity");
}

} // namespace deft::transforms
