/// What the language promises at the edges of its operations. That all others mean what they should is
/// TileAnalysisTest's, which holds masks against the language.

#include "compiler/transforms/ImportExpr.h"

#include "tests/unit/compiler/transforms/HookTesting.h"
#include "tests/unit/compiler/transforms/RegionInterpreter.h"

#include <gtest/gtest.h>

#include <climits>
#include <cmath>

namespace deft::transforms {
namespace {

using test::ImportedHooks;
using test::Scalar;

const std::vector<Scalar> kSomewhere{{0, 1}, {9, 0}, {5, 0}, {2, 0}, {1, 0}, {0, 0}, {0, 0}};

/// A mask of i32 parameters n and m; undefined operations of IR are a failure.
bool isTrue(const std::string &mask, int n, int m) {
  ImportedHooks hooks("param n : i32; param m : i32; mask = kv_pos > 100 || " + mask + ";",
                      /*isOptimised=*/false);
  const test::ParamValues params{{"n", {{n, 0}}}, {"m", {{m, 0}}}};
  test::RegionInterpreter interpreter(hooks.attention.getMask(), params);
  const bool result = interpreter.run(kSomewhere)[0].integer != 0;
  EXPECT_EQ(interpreter.undefined(), "") << mask;
  return result;
}
/// A score of f32 parameters a and b.
float scoreOf(const std::string &score, float a, float b = 0) {
  ImportedHooks hooks("param a : f32; param b : f32; param t : f32[4]; score = " + score + ";",
                      /*isOptimised=*/false);
  const test::ParamValues params{
      {"a", {{0, a}}}, {"b", {{0, b}}}, {"t", {{0, 10}, {0, 11}, {0, 12}, {0, 13}}}};
  test::RegionInterpreter interpreter(hooks.attention.getScore(), params);
  const float result = interpreter.run(kSomewhere)[0].real;
  EXPECT_EQ(interpreter.undefined(), "") << score;
  return result;
}

TEST(ImportExprTest, RemaindersOfEveryDivisorAreDefined) {
  for (const int n : {INT_MIN, -7, 0, 7, INT_MAX})
    for (const int m : {INT_MIN, -3, -1, 0, 1, 3, INT_MAX}) {
      const int expected = m == 0 || m == -1 ? 0 : n % m;
      EXPECT_TRUE(isTrue("n % m == " + std::to_string(expected), n, m)) << n << " % " << m;
    }
}

TEST(ImportExprTest, NumbersWrapAround) {
  EXPECT_TRUE(isTrue("n + m < 0", INT_MAX, 1));
  EXPECT_TRUE(isTrue("abs(n) == n", INT_MIN, 0));
  EXPECT_TRUE(isTrue("-n == n", INT_MIN, 0));
}

TEST(ImportExprTest, ANanIsNoNumberAndUnlikeAll) {
  EXPECT_EQ(scoreOf("min(a, b)", NAN, 3), 3);
  EXPECT_EQ(scoreOf("max(a, b)", 3, NAN), 3);
  EXPECT_TRUE(std::isnan(scoreOf("min(a, b)", NAN, NAN)));
  EXPECT_EQ(scoreOf("a != a ? 1 : 0", NAN), 1);
  for (const char *const comparison : {"a < b", "a <= b", "a > b", "a >= b", "a == b"})
    EXPECT_EQ(scoreOf(std::string(comparison) + " ? 1 : 0", NAN, 3), 0) << comparison;
}

TEST(ImportExprTest, ASigmoidIsRightAtBothEnds) {
  EXPECT_EQ(scoreOf("sigmoid(a)", INFINITY), 1);
  EXPECT_EQ(scoreOf("sigmoid(a)", -INFINITY), 0);
  EXPECT_EQ(scoreOf("sigmoid(a)", 0), 0.5F);
  EXPECT_EQ(scoreOf("sigmoid(a)", -200), 0) << "its power overflows";
}

TEST(ImportExprTest, AnExpressionThatIsSharedIsThereOnce) {
  const auto countOf = [](const std::string &score) {
    ImportedHooks hooks(score, /*isOptimised=*/false);
    int exps = 0;
    for (mlir::Operation &op : hooks.attention.getScore().front())
      exps += op.getName().getStringRef() == "math.exp";
    return exps;
  };
  EXPECT_EQ(countOf("let e = exp(s); score = e * e + e;"), 1);
  EXPECT_EQ(countOf("score = exp(exp(s));"), 2);
}

TEST(ImportExprTest, TypesAreThoseOfTheLanguage) {
  mlir::MLIRContext context;
  EXPECT_TRUE(scalarType(&context, spec::ScalarType::Bool).isInteger(1));
  EXPECT_TRUE(scalarType(&context, spec::ScalarType::I32).isInteger(32));
  EXPECT_TRUE(scalarType(&context, spec::ScalarType::F32).isF32());
}

} // namespace
} // namespace deft::transforms
