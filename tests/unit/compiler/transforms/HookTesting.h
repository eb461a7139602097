#pragma once

#include "compiler/transforms/Import.h"
#include "compiler/transforms/Passes.h"
#include "tests/unit/compiler/spec/SpecTesting.h"

#include "mlir/IR/MLIRContext.h"

#include <string>

namespace deft::test {

/// The IR of an attention of 8 query heads and 4 KV heads with these items, as it is imported or optimised.
struct ImportedHooks {
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  mlir::OwningOpRef<mlir::ModuleOp> module;
  dialect::AttentionOp attention;

  explicit ImportedHooks(const std::string &items, bool isOptimised = true) {
    importVariant(spec::testing::compile(spec::testing::attention(items)).only());
    if (isOptimised) {
      EXPECT_TRUE(mlir::succeeded(transforms::optimize(*module)));
    }
    attention = *module->getOps<dialect::AttentionOp>().begin();
  }
  explicit ImportedHooks(const spec::Variant &variant) { importVariant(variant); }

private:
  void importVariant(const spec::Variant &variant) {
    transforms::loadDialects(context);
    module = mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
    attention = transforms::importVariant(
        *module, variant, [&](support::SourceRange) { return mlir::UnknownLoc::get(&context); });
  }
};

} // namespace deft::test
