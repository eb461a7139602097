/// How expressions are written; that they compute what they should is HookEmitterTest's.

#include "compiler/codegen/cuda/hooks/ExprPrinter.h"

#include "tests/unit/compiler/transforms/HookTesting.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

#include <gtest/gtest.h>

namespace deft::codegen::cuda {
namespace {

using test::ImportedHooks;

struct Printed {
  std::string expression, statements;
  bool isSupported = true;
};

Printed print(mlir::Region &region, Rounding rounding) {
  static const char *const kNames[] = {"s", "qPos", "kvPos", "head", "kvHead", "depth", "query"};
  ExprPrinter printer;
  for (const mlir::BlockArgument argument : region.getArguments())
    printer.bind(argument, kNames[argument.getArgNumber()]);
  const mlir::Value root = region.front().getTerminator()->getOperand(0);
  const auto expressions = printer.print(region, root, rounding);
  return {expressions.front(), printer.statements(), printer.unsupported() == nullptr};
}

Printed maskOf(const std::string &mask) {
  ImportedHooks hooks("param n : i32; mask = " + mask + ";", /*isOptimised=*/false);
  return print(hooks.attention.getMask(), Rounding::Exact);
}
std::string scoreOf(const std::string &score, Rounding rounding = Rounding::Fused) {
  ImportedHooks hooks("param cap : f32; score = " + score + ";", /*isOptimised=*/false);
  return print(hooks.attention.getScore(), rounding).expression;
}

TEST(ExprPrinterTest, ParenthesesStandWhereTheyAreNeeded) {
  EXPECT_EQ(scoreOf("(s + cap) * 2"), "(s + p.cap_) * 2.f");
  EXPECT_EQ(scoreOf("s + cap * 2"), "s + p.cap_ * 2.f");
  EXPECT_EQ(scoreOf("s - (cap - 2)"), "s - (p.cap_ - 2.f)");
  EXPECT_EQ(scoreOf("s - cap - 2"), "s - p.cap_ - 2.f");
  EXPECT_EQ(scoreOf("s / (cap * 2)"), "s / (p.cap_ * 2.f)");
  EXPECT_EQ(scoreOf("-(-s)"), "-(-s)") << "and no decrement";
  EXPECT_EQ(scoreOf("(s > 1 ? s : cap) + 2"), "(s > 1.f ? s : p.cap_) + 2.f");
  EXPECT_EQ(maskOf("kv_pos > 3 && (q_pos > 4 || head == 0)").expression,
            "kvPos > 3 && (qPos > 4 || head == 0)");
  EXPECT_EQ(maskOf("kv_pos > 3 && q_pos > 4 || head == 0").expression,
            "(kvPos > 3 && qPos > 4) || head == 0");
  EXPECT_EQ(maskOf("!(kv_pos > 3 && head == 0)").expression, "!(kvPos > 3 && head == 0)");
}

TEST(ExprPrinterTest, ExactArithmeticIsNeverFused) {
  EXPECT_EQ(scoreOf("s * cap + 2", Rounding::Exact), "__fadd_rn(__fmul_rn(s, p.cap_), 2.f)");
  EXPECT_EQ(scoreOf("sqrt(s) - tanh(cap)", Rounding::Exact), "__fsub_rn(__fsqrt_rn(s), tanhf(p.cap_))");
  EXPECT_EQ(scoreOf("sqrt(s) - tanh(cap)"), "sqrtf(s) - deft::tanhFast(p.cap_)");
}

TEST(ExprPrinterTest, WhatMayOverflowWrapsAround) {
  EXPECT_EQ(maskOf("kv_pos - q_pos > 3").expression, "kvPos - qPos > 3");
  EXPECT_EQ(maskOf("kv_pos - n > 3").expression, "int(unsigned(kvPos) - unsigned(p.n_)) > 3");
}

TEST(ExprPrinterTest, WhatIsUsedTwiceOrLongGetsAName) {
  ImportedHooks hooks("let twice = s * 2; score = twice * twice;", /*isOptimised=*/false);
  const Printed twice = print(hooks.attention.getScore(), Rounding::Fused);
  EXPECT_EQ(twice.expression, "v0 * v0");
  EXPECT_EQ(twice.statements, "    const float v0 = s * 2.f;\n");
  std::string sum = "s";
  for (int i = 0; i < 8; ++i)
    sum = "exp(" + sum + ")";
  ImportedHooks deep("score = " + sum + ";", /*isOptimised=*/false);
  const Printed named = print(deep.attention.getScore(), Rounding::Fused);
  EXPECT_EQ(named.statements.find("    const float v0 = expf("), 0U) << named.statements;
  EXPECT_EQ(named.expression, "expf(v0)");
}

TEST(ExprPrinterTest, AnOperationWithoutAFormIsTold) {
  ImportedHooks hooks("mask = kv_pos > 3;", /*isOptimised=*/false);
  mlir::Region &mask = hooks.attention.getMask();
  EXPECT_TRUE(print(mask, Rounding::Exact).isSupported);
  mlir::Operation *const yield = mask.front().getTerminator();
  mlir::OpBuilder builder(yield);
  const mlir::Value kvPos = mask.getArgument(dialect::kArgKvPos), qPos = mask.getArgument(dialect::kArgQPos);
  const mlir::Value unsignedLess =
      mlir::arith::CmpIOp::create(builder, yield->getLoc(), mlir::arith::CmpIPredicate::ult, kvPos, qPos);
  yield->setOperands(unsignedLess);
  EXPECT_FALSE(print(mask, Rounding::Exact).isSupported);
}

TEST(ExprPrinterTest, MembersAreNoWordsOfCompilers) {
  EXPECT_EQ(memberName("cap"), "cap_");
  EXPECT_EQ(memberName("float"), "float_");
  EXPECT_EQ(memberName("__CUDA_ARCH_"), "p__CUDA_ARCH__p") << "with an underscore behind it, a macro";
  EXPECT_EQ(memberName("_"), "p__p");
}

TEST(ExprPrinterTest, TypesHaveTheirNames) {
  mlir::MLIRContext context;
  mlir::OpBuilder builder(&context);
  EXPECT_EQ(typeName(builder.getF32Type()), "float");
  EXPECT_EQ(typeName(builder.getI1Type()), "bool");
  EXPECT_EQ(typeName(builder.getI32Type()), "int");
  EXPECT_EQ(typeName(builder.getI64Type()), "long long");
}

} // namespace
} // namespace deft::codegen::cuda
