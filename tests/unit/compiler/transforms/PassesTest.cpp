/// All passes together; each by itself is shown by its example (tests/passes) and by tests of IR.

#include "compiler/transforms/Passes.h"

#include "tests/support/RandomExpr.h"
#include "tests/unit/compiler/transforms/HookTesting.h"
#include "tests/unit/compiler/transforms/RegionInterpreter.h"

#include "mlir/IR/Matchers.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

#include <gtest/gtest.h>

#include <random>

namespace deft::transforms {
namespace {

using test::ImportedHooks;
using test::Scalar;

std::string textOf(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  module.print(out);
  return text;
}

/// Masks are exact: no pass may change one bit of what they say.
TEST(PassesTest, AMaskSaysTheSameAfterwards) {
  std::mt19937 random(41);
  const auto pick = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  int visible = 0, all = 0;
  for (int turn = 0; turn < 150; ++turn) {
    SCOPED_TRACE("turn " + std::to_string(turn));
    test::VariantBuilder builder(8, 4, 64);
    test::RandomExpr expressions(builder, random, /*withScore=*/false);
    builder.variant.mask = expressions.boolean(4);
    ImportedHooks before(builder.variant), after(builder.variant);
    ASSERT_TRUE(mlir::succeeded(optimize(*after.module)));
    dialect::AttentionOp attention = *after.module->getOps<dialect::AttentionOp>().begin();
    test::ParamValues params;
    for (const spec::Param &param : builder.variant.params)
      for (int i = 0; i < std::max(8, param.size); ++i)
        params[param.name].push_back({pick(-6, 12), static_cast<float>(pick(-20, 20)) / 4});
    test::RegionInterpreter ofBefore(before.attention.getMask(), params);
    std::optional<test::RegionInterpreter> ofAfter; // a mask that hides nothing may be gone
    if (attention.hasMask())
      ofAfter.emplace(attention.getMask(), params);
    EXPECT_EQ(attention.hasTile(), attention.hasMask());
    for (int call = 0; call < 20; ++call) {
      const int kvHead = pick(0, 3);
      const Scalar arguments[] = {
          {0, 0},      {pick(-1, 40), 0}, {pick(0, 40), 0}, {2 * kvHead + pick(0, 1), 0},
          {kvHead, 0}, {pick(0, 5), 0},   {pick(0, 9), 0}};
      const bool isVisible = ofBefore.run(arguments)[0].integer != 0;
      ASSERT_EQ(!ofAfter || ofAfter->run(arguments)[0].integer != 0, isVisible);
      visible += isVisible;
      ++all;
    }
  }
  EXPECT_GT(visible, all / 5);
  EXPECT_LT(visible, all * 4 / 5);
}

/// What `score` is at distance 41: times its reciprocal 41 is less than 1.
float scoreAt41(const std::string &items) {
  ImportedHooks hooks(items);
  test::ParamValues params{{"n", {{0, 41}}}, {"bias", {{0, 7}, {0, 8}}}};
  const Scalar arguments[] = {{0, 0}, {41, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}};
  return test::RegionInterpreter(hooks.attention.getScore(), params).run(arguments)[0].real;
}

TEST(PassesTest, AQuotientOfPositionsThatIsRoundedDownIsExact) {
  EXPECT_EQ(scoreAt41("param n : f32; score = s + floor((q_pos - kv_pos) / n);"), 1);
  EXPECT_EQ(scoreAt41("score = s + floor(abs(kv_pos - q_pos) / 41.0);"), 1);
  EXPECT_EQ(scoreAt41("param bias : f32[2]; score = s + bias[(q_pos - kv_pos) / 41.0];"), 8);
  EXPECT_EQ(scoreAt41("param n : f32; score = s + ((q_pos - kv_pos) / n >= 1.0 ? 3.0 : 2.0);"), 3);
  EXPECT_EQ(scoreAt41("param n : f32; score = s + floor(min((q_pos - kv_pos) / n, 9.0) / 1.0);"), 1);
}

TEST(PassesTest, WhatRoundingDecidesAnywayIsDividedByReciprocals) {
  const auto divisionsByN = [](const std::string &items) {
    ImportedHooks hooks(items);
    int count = 0;
    for (mlir::Operation &op : hooks.attention.getScore().front())
      if (op.getName().getStringRef() == "arith.divf")
        count += !mlir::matchPattern(op.getOperand(0), mlir::m_OneFloat());
    return count;
  };
  EXPECT_EQ(divisionsByN("param n : f32; score = floor(s / n);"), 0);
  EXPECT_EQ(divisionsByN("param n : f32; score = floor(log(1.0 + kv_pos) / n);"), 0);
  EXPECT_EQ(divisionsByN("param n : f32; score = floor(log(1.0 + kv_pos / n));"), 0);
  EXPECT_EQ(divisionsByN("param n : f32; param m : f32; score = s / n / m;"), 0); // both
  EXPECT_EQ(divisionsByN("param n : f32; score = s + kv_pos / n;"), 0);
  EXPECT_EQ(divisionsByN("param n : f32; score = s + floor(kv_pos / n);"), 1);
}

TEST(PassesTest, WhatIsOptimisedStaysAsItIs) {
  for (const char *const items :
       {"", "param cap : f32; score = cap * tanh(s / cap);", "mask = kv_pos > q_pos - 20 && head % 2 == 0;",
        "normalize = sigmoid(1 - q_pos); mask = kv_pos < 4 || kv_pos > q_pos - 8;"}) {
    ImportedHooks hooks(items);
    const std::string once = textOf(*hooks.module);
    ASSERT_TRUE(mlir::succeeded(optimize(*hooks.module)));
    EXPECT_EQ(textOf(*hooks.module), once);
  }
}

TEST(PassesTest, EachHasANameOnACommandLine) {
  registerPasses();
  mlir::MLIRContext context;
  loadDialects(context);
  for (const std::string &pipeline : {std::string("builtin.module(deft.attention(deft-reciprocal))"),
                                      std::string("builtin.module(deft.attention(deft-tile-analysis))"),
                                      std::string("builtin.module(deft.attention(deft-annotate-uniformity))"),
                                      std::string("builtin.module(deft-optimize)")}) {
    mlir::PassManager manager(&context);
    EXPECT_TRUE(mlir::succeeded(mlir::parsePassPipeline(pipeline, manager))) << pipeline;
  }
}

} // namespace
} // namespace deft::transforms
