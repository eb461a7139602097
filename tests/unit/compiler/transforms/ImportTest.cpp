#include "compiler/transforms/Import.h"

#include "tests/unit/compiler/transforms/HookTesting.h"
#include "tests/unit/compiler/transforms/RegionInterpreter.h"

#include "mlir/IR/Verifier.h"

#include <gtest/gtest.h>

namespace deft::transforms {
namespace {

using test::ImportedHooks;
using test::Scalar;

TEST(ImportTest, FactsOfTheVariantAreAttributes) {
  ImportedHooks hooks(
      "output = f16 with lse; kv_cache = paged(page_size = 8, order = hnd); scale = 0.25;"
      "param cap : f32 = 30; param slopes : f32[query_heads]; score = s + cap * slopes[head];",
      /*isOptimised=*/false);
  dialect::AttentionOp attention = hooks.attention;
  EXPECT_TRUE(mlir::succeeded(mlir::verify(*hooks.module)));
  EXPECT_EQ(attention.getSymName(), "a");
  EXPECT_EQ(attention.getQueryHeads(), 8U);
  EXPECT_EQ(attention.getKvHeads(), 4U);
  spec::Tensors tensors = spec::Tensors::alike(64);
  tensors.out.dtype = spec::DType::F16;
  EXPECT_EQ(attention.tensors(), tensors);
  EXPECT_TRUE(attention.getLse());
  EXPECT_EQ(attention.getCache().getPageSize(), 8);
  EXPECT_EQ(attention.getScale().convertToDouble(), 0.25);
  EXPECT_EQ(attention.findParam("slopes").second, 1U);
  EXPECT_FALSE(attention.findParam("slope").first);
}

TEST(ImportTest, OnlyHooksThatTheVariantHasAreThere) {
  const auto hooksOf = [](const std::string &items) {
    ImportedHooks hooks(items, /*isOptimised=*/false);
    dialect::AttentionOp a = hooks.attention;
    std::string names;
    for (const auto &[name, has] : {std::pair("query", a.hasQuery()),
                                    {"mask", a.hasMask()},
                                    {"score", a.hasScore()},
                                    {"sink", a.hasSink()},
                                    {"output", a.hasOutput()},
                                    {"tile", a.hasTile()}})
      names += has ? std::string(names.empty() ? "" : " ") + name : "";
    return names;
  };
  EXPECT_EQ(hooksOf(""), "");
  EXPECT_EQ(hooksOf("mask = kv_pos > 3;"), "mask") << "tiles are the passes'";
  EXPECT_EQ(hooksOf("query = 2 * x; output = x * 3; score = s * 2; normalize = softmax with sink(1.0);"),
            "query score sink output");
  EXPECT_EQ(hooksOf("normalize = sigmoid(1 - q_pos);"), "score") << "a bias is a part of it";
}

TEST(ImportTest, ASigmoidsBiasIsAddedToTheScore) {
  const auto scoreAt = [](const std::string &items, float s, int qPos) {
    ImportedHooks hooks(items, /*isOptimised=*/false);
    const test::ParamValues none;
    test::RegionInterpreter interpreter(hooks.attention.getScore(), none);
    const Scalar arguments[] = {{0, s}, {qPos, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}};
    return interpreter.run(arguments)[0].real;
  };
  EXPECT_EQ(scoreAt("normalize = sigmoid(1 - q_pos);", 0.5F, 4), 0.5F + 1 - 4);
  EXPECT_EQ(scoreAt("score = s * 3; normalize = sigmoid(1 - q_pos);", 0.5F, 4), 1.5F + 1 - 4);
}

TEST(ImportTest, EachOperationIsWhereItsTextIs) {
  const spec::Variant variant =
      spec::testing::compile(spec::testing::attention("mask = kv_pos > q_pos - 7;")).only();
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  loadDialects(context);
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
  dialect::AttentionOp attention = importVariant(*module, variant, [&](support::SourceRange range) {
    return mlir::FileLineColLoc::get(&context, "my.deft", range.begin + 1, range.end - range.begin + 1);
  });
  for (mlir::Operation &op : attention.getMask().front())
    EXPECT_TRUE(mlir::isa<mlir::FileLineColLoc>(op.getLoc()));
  mlir::Operation *const root = attention.getMask().front().getTerminator()->getOperand(0).getDefiningOp();
  const support::SourceRange range = variant.exprs[*variant.mask].range;
  EXPECT_EQ(mlir::cast<mlir::FileLineColLoc>(root->getLoc()).getLine(), range.begin + 1);
}

} // namespace
} // namespace deft::transforms
