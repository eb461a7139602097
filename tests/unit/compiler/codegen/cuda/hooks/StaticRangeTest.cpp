#include "compiler/codegen/cuda/hooks/StaticRange.h"

#include "tests/support/RandomExpr.h"
#include "tests/unit/compiler/transforms/HookTesting.h"
#include "tests/unit/compiler/transforms/RegionInterpreter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <gtest/gtest.h>

#include <climits>
#include <random>

namespace deft::codegen::cuda {
namespace {

using test::ImportedHooks;
using test::Scalar;

/// "+ - +": of each of the operations that may overflow whether it cannot: "ok", or it may: "wraps".
std::string claimsOf(const std::string &mask) {
  ImportedHooks hooks("param n : i32; mask = " + mask + ";", /*isOptimised=*/false);
  mlir::Region &region = hooks.attention.getMask();
  const StaticRanges ranges(region);
  std::string claims;
  for (mlir::Operation &op : region.front())
    if (mlir::isa<mlir::arith::AddIOp, mlir::arith::SubIOp, mlir::arith::MulIOp, mlir::math::AbsIOp>(op))
      claims += (claims.empty() ? "" : " ") + std::string(ranges.cannotOverflow(op) ? "ok" : "wraps");
  return claims;
}

TEST(StaticRangeTest, PositionsHaveLimitsAndParametersNone) {
  EXPECT_EQ(claimsOf("kv_pos - q_pos > 3"), "ok");
  EXPECT_EQ(claimsOf("kv_pos + q_pos > 3"), "ok") << "two numbers below 2^30";
  EXPECT_EQ(claimsOf("kv_pos + q_pos + depth > 3"), "ok wraps");
  EXPECT_EQ(claimsOf("kv_pos - n > 3"), "wraps");
  EXPECT_EQ(claimsOf("kv_pos * 2 > 3"), "ok");
  EXPECT_EQ(claimsOf("kv_pos * 3 > 3"), "wraps");
  EXPECT_EQ(claimsOf("head * 1000 + kv_head > 3"), "ok ok");
  EXPECT_EQ(claimsOf("kv_pos % 100 * 1000 > 3"), "ok") << "a remainder is less than its divisor";
  EXPECT_EQ(claimsOf("n % 100 + kv_pos > 3"), "ok");
  EXPECT_EQ(claimsOf("abs(n) > 3"), "wraps") << "the least i32 has no opposite";
  EXPECT_EQ(claimsOf("abs(kv_pos - q_pos) > 3"), "ok ok");
  EXPECT_EQ(claimsOf("min(n, 5) - kv_pos > 3"), "wraps");
}

/// Whatever is claimed holds for numbers at the ends of what they may be.
TEST(StaticRangeTest, NothingThatOverflowsIsSaidNotTo) {
  constexpr int kLast = static_cast<int>(dialect::kPositionLimit) - 1;
  std::mt19937 random(77);
  const auto oneOf = [&](std::initializer_list<int> values) {
    return values.begin()[random() % values.size()];
  };
  long claimed = 0, overflowing = 0;
  for (int turn = 0; turn < 300; ++turn) {
    SCOPED_TRACE("turn " + std::to_string(turn));
    test::VariantBuilder builder(8, 4, 64);
    test::RandomExpr expressions(builder, random, /*withScore=*/false);
    expressions.realsOfThree = 0;
    builder.variant.mask = expressions.boolean(4);
    ImportedHooks hooks(builder.variant);
    mlir::Region &region = hooks.attention.getMask();
    const StaticRanges ranges(region);
    std::vector<mlir::Operation *> ops;
    std::vector<mlir::Value> operands;
    for (mlir::Operation &op : region.front())
      if (mlir::isa<mlir::arith::AddIOp, mlir::arith::SubIOp, mlir::arith::MulIOp>(op) &&
          op.getResult(0).getType().isInteger(32)) {
        ops.push_back(&op);
        operands.push_back(op.getOperand(0));
        operands.push_back(op.getOperand(1));
      }
    region.front().getTerminator()->setOperands(operands); // to see what each of them gets
    for (int call = 0; call < 30; ++call) {
      test::ParamValues params;
      for (const spec::Param &param : builder.variant.params)
        for (int i = 0; i < std::max(8, param.size); ++i)
          params[param.name].push_back({oneOf({INT_MIN, INT_MAX, -1, 0, 7, 1 << 30}), 1});
      test::RegionInterpreter interpreter(region, params);
      const Scalar arguments[] = {{0, 1},
                                  {oneOf({-1, 0, 9, kLast}), 0},
                                  {oneOf({0, 9, kLast}), 0},
                                  {oneOf({0, 7}), 0},
                                  {oneOf({0, 3}), 0},
                                  {oneOf({0, 2, kLast}), 0},
                                  {oneOf({0, 2, kLast}), 0}};
      const std::vector<Scalar> &values = interpreter.run(arguments);
      for (std::size_t i = 0; i < ops.size(); ++i) {
        const std::int64_t a = values[2 * i].integer, b = values[2 * i + 1].integer;
        const std::int64_t exact = mlir::isa<mlir::arith::AddIOp>(ops[i])   ? a + b
                                   : mlir::isa<mlir::arith::SubIOp>(ops[i]) ? a - b
                                                                            : a * b;
        const bool overflows = exact < INT_MIN || exact > INT_MAX;
        const bool isClaimed = ranges.cannotOverflow(*ops[i]);
        ASSERT_FALSE(isClaimed && overflows) << a << " and " << b;
        claimed += isClaimed;
        overflowing += overflows;
      }
    }
  }
  EXPECT_GT(claimed, 1000);
  EXPECT_GT(overflowing, 1000);
}

} // namespace
} // namespace deft::codegen::cuda
