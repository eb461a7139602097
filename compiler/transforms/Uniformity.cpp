#include "compiler/transforms/Uniformity.h"

#include "compiler/transforms/Passes.h"

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
    unsigned bits = 0;
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

namespace {
struct AnnotateUniformityPass
    : mlir::PassWrapper<AnnotateUniformityPass, mlir::OperationPass<dialect::AttentionOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(AnnotateUniformityPass)
  llvm::StringRef getArgument() const override { return "deft-annotate-uniformity"; }
  llvm::StringRef getDescription() const override { return "write what each operation of a hook depends on"; }

  void runOnOperation() override {
    for (mlir::Region *hook : {&getOperation().getMask(), &getOperation().getScore()}) {
      UniformityAnalysis analysis(*hook);
      for (mlir::Operation &op : hook->getOps())
        if (op.getNumResults() != 0)
          op.setAttr("deft.uniformity",
                     mlir::StringAttr::get(&getContext(), uniformityName(analysis.of(op.getResult(0)))));
    }
  }
};
} // namespace

std::unique_ptr<mlir::Pass> createAnnotateUniformityPass() {
  return std::make_unique<AnnotateUniformityPass>();
}

} // namespace deft::transforms
