#include "tests/unit/compiler/spec/SpecTesting.h"

namespace deft::spec::testing {
namespace {

// Rule E1.
TEST(ExprSemaTest, NamesHaveTheirTypes) {
  EXPECT_EQ(
      scoreOf("score = s + q_pos + kv_pos + head + kv_head + depth + query;"),
      "(add:f32 (add:f32 (add:f32 (add:f32 (add:f32 (add:f32 s (to_f32:f32 q_pos)) (to_f32:f32 kv_pos)) "
      "(to_f32:f32 head)) (to_f32:f32 kv_head)) (to_f32:f32 depth)) (to_f32:f32 query))");
  EXPECT_EQ(scoreOf("score = query_heads + kv_heads + head_dim;"), "76f");
  EXPECT_EQ(scoreOf("score = kv_pos > 3 ? s : -inf;"), "(select:f32 (gt:bool kv_pos 3) s -inff)");
}

// Rule E2. The usual text of the largest f32 is a little more than it is.
TEST(ExprSemaTest, ANumberThatRoundsToTheLargestF32IsIt) {
  EXPECT_EQ(scoreOf("score = s + 3.4028235e38;"), "(add:f32 s 3.4028234663852886e+38f)");
  EXPECT_EQ(scoreOf("score = max(s, -3.4028235e38);"), "(max:f32 s -3.4028234663852886e+38f)");
  EXPECT_EQ(compile(attention("score = s + 3.4028236e38;")).errors, 1u);
}

// Rule E3.
TEST(ExprSemaTest, IntegersPromoteWhereTheOtherSideIsFloat) {
  EXPECT_EQ(scoreOf("score = s * 2;"), "(mul:f32 s 2f)");
  EXPECT_EQ(scoreOf("score = kv_pos - q_pos;"), "(to_f32:f32 (sub:i32 kv_pos q_pos))");
  EXPECT_EQ(scoreOf("score = depth > 1 ? depth : s;"), "(select:f32 (gt:bool depth 1) (to_f32:f32 depth) s)");
  EXPECT_EQ(scoreOf("score = exp(depth) + max(depth, s);"),
            "(add:f32 (exp:f32 (to_f32:f32 depth)) (max:f32 (to_f32:f32 depth) s))");
  EXPECT_EQ(maskOf("mask = kv_pos < 0.5;"), "(lt:bool (to_f32:f32 kv_pos) 0.5f)");
}

// Rule E4.
TEST(ExprSemaTest, IntegersStayIntegersExceptInDivision) {
  EXPECT_EQ(maskOf("mask = kv_pos * 2 + 1 - depth > 3;"),
            "(gt:bool (sub:i32 (add:i32 (mul:i32 kv_pos 2) 1) depth) 3)");
  EXPECT_EQ(scoreOf("score = kv_pos / 2;"), "(div:f32 (to_f32:f32 kv_pos) 2f)");
  EXPECT_EQ(scoreOf("score = 7 / 2;"), "3.5f");
}

// Rules E5, E6.
TEST(ExprSemaTest, RemainderAndComparisonsOfIntegers) {
  EXPECT_EQ(maskOf("mask = kv_pos % 4 == 0 || !(head != 2);"),
            "(or:bool (eq:bool (rem:i32 kv_pos 4) 0) (not:bool (ne:bool head 2)))");
}

// Rule E7.
TEST(ExprSemaTest, ConditionalsChooseNumbersAndBools) {
  EXPECT_EQ(maskOf("mask = head == 0 ? kv_pos > 3 : depth < 2;"),
            "(select:bool (eq:bool head 0) (gt:bool kv_pos 3) (lt:bool depth 2))");
  EXPECT_EQ(maskOf("mask = kv_pos > (head == 0 ? 3 : 4);"),
            "(gt:bool kv_pos (select:i32 (eq:bool head 0) 3 4))");
}

// Rule E8.
TEST(ExprSemaTest, ConstantsAreFolded) {
  EXPECT_EQ(scoreOf("score = s * (1 + 2 * 3) + sqrt(16);"), "(add:f32 (mul:f32 s 7f) 4f)");
  EXPECT_EQ(maskOf("mask = 2 > 1;"), "tree");
  EXPECT_EQ(maskOf("mask = tree && (2 > 1 && kv_pos > 0);"), "(gt:bool kv_pos 0)");
  EXPECT_EQ(scoreOf("score = true ? s : 0;"), "s");
}

// Rule E9.
TEST(ExprSemaTest, FunctionsKeepIntegersOnlyWhereTheyCan) {
  EXPECT_EQ(maskOf("mask = min(kv_pos, 3) + max(depth, 1) > abs(q_pos);"),
            "(gt:bool (add:i32 (min:i32 kv_pos 3) (max:i32 depth 1)) (abs:i32 q_pos))");
  for (const std::string &name : functionNames())
    if (operationOf(*parseFunction(name)).operands == 1) {
      EXPECT_EQ(scoreOf("score = " + name + "(s);"), "(" + name + ":f32 s)");
    }
}

// Rule E9.
TEST(ExprSemaTest, FloorDivisionIsOfIntegers) {
  EXPECT_EQ(maskOf("mask = floor_div(kv_pos, 4) == 1;"), "(eq:bool (floor_div:i32 kv_pos 4) 1)");
  EXPECT_EQ(scoreOf("score = floor_div(-7, 2);"), "-4f");
  EXPECT_EQ(compile(attention("score = floor_div(s, 2);")).errors, 1u);
}

// Rule E10.
TEST(ExprSemaTest, LetsAreShared) {
  Compiled compiled =
      compile(attention("let d = kv_pos - q_pos; let e = d * d; score = s + e + e; mask = e < 100;"));
  const Variant &variant = compiled.only();
  EXPECT_EQ(describe(variant, *variant.mask),
            "(lt:bool (mul:i32 (sub:i32 kv_pos q_pos) (sub:i32 kv_pos q_pos)) 100)");
  EXPECT_EQ(variant.exprs.size(), 10u) << "s, two positions, d, e, its f32, two sums, 100, the comparison";
  EXPECT_EQ(compile("let w = 4; " + attention("mask = kv_pos > w;")).errors, 0u);
}

// Rule E11.
TEST(ExprSemaTest, FunctionsAreSubstituted) {
  EXPECT_EQ(maskOf("mask far(w: i32) = kv_pos < q_pos - w; mask = !far(2 * 8);"),
            "(not:bool (lt:bool kv_pos (sub:i32 q_pos 16)))");
  EXPECT_EQ(scoreOf("score cap(s: f32, c: f32) = c * tanh(s / c); score = cap(2 * s, 30);"),
            "(mul:f32 30f (tanh:f32 (div:f32 (mul:f32 2f s) 30f)))")
      << "an argument hides the name s";
  EXPECT_EQ(scoreOf("score outer(x: f32) = inner(x) + 1; score inner(y: f32) = y * gain; "
                    "param gain : f32; score = outer(s);"),
            "(add:f32 (mul:f32 s gain) 1f)")
      << "the order of functions is free, and they see the parameters";
  EXPECT_EQ(scoreOf("mask pick(a: bool) = a && kv_pos > 1; score = pick(head == 0) ? s : 0;"),
            "(select:f32 (and:bool (eq:bool head 0) (gt:bool kv_pos 1)) s 0f)");
}

// Rule E12.
TEST(ExprSemaTest, ArraysArePassedByName) {
  EXPECT_EQ(scoreOf("param slope : f32[query_heads]; param rate : i32[kv_heads];"
                    "score inner(a: f32[query_heads], b: i32[kv_heads]) = a[head] * b[kv_head];"
                    "score outer(x: f32[query_heads]) = inner(x, rate); score = outer(slope);"),
            "(mul:f32 slope[] (to_f32:f32 rate[]))");
}

// Rule E13.
TEST(ExprSemaTest, ConstantsMayBeAnyFoldedExpression) {
  Compiled compiled = compile(
      "let base = 16;"
      "attention a { let twice = 2 * base; query_heads = twice; kv_heads = query_heads / 1 > 3.0 ? 8 : 4;"
      "  head_dim = max(twice, 64); scale = 1 / sqrt(head_dim);"
      "  kv_cache = paged(page_size = base * 4);"
      "  param p : f32 = -1 / 4; schedule { chunk = tune(base, twice); } }");
  const Variant &variant = compiled.only();
  EXPECT_EQ(variant.queryHeads, 32);
  EXPECT_EQ(variant.kvHeads, 8);
  EXPECT_EQ(variant.tensors.k.dim, 64);
  EXPECT_EQ(variant.scale, 0.125);
  EXPECT_EQ(variant.cache.pageSize, 64);
  EXPECT_EQ(variant.params.at(0).defaultValue, -0.25);
  EXPECT_EQ(variant.schedule->chunk->values, (std::vector<int>{16, 32}));
}

// Rules E1, F5: names of an attention hide those of the top level, and a top-level function sees only the
// latter.
TEST(ExprSemaTest, AFunctionSeesTheNamesOfItsOwnBlock) {
  Compiled compiled =
      compile("let w = 4; mask near() = kv_pos > w;" + attention("let w = 9; mask = near() && kv_pos < w;"));
  const Variant &variant = compiled.only();
  EXPECT_EQ(describe(variant, *variant.mask), "(and:bool (gt:bool kv_pos 4) (lt:bool kv_pos 9))");
}

} // namespace
} // namespace deft::spec::testing
