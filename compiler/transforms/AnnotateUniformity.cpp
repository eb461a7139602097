#include "compiler/transforms/Passes.h"
#include "compiler/transforms/Uniformity.h"

namespace deft::transforms {

#define GEN_PASS_DEF_ANNOTATEUNIFORMITYPASS
#include "compiler/transforms/Passes.h.inc"

namespace {
struct AnnotateUniformityPass : impl::AnnotateUniformityPassBase<AnnotateUniformityPass> {
  void runOnOperation() override {
    dialect::AttentionOp attention = getOperation();
    for (mlir::Region *hook :
         {&attention.getMask(), &attention.getScore(), &attention.getValueFactor(), &attention.getSink()}) {
      UniformityAnalysis analysis(*hook);
      for (mlir::Operation &op : hook->getOps())
        if (op.getNumResults() != 0)
          op.setAttr("deft.uniformity",
                     mlir::StringAttr::get(&getContext(), uniformityName(analysis.of(op.getResult(0)))));
    }
  }
};
} // namespace

} // namespace deft::transforms
