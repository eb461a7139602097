#include "tests/unit/compiler/spec/SpecTesting.h"

#include <cmath>

namespace deft::spec::testing {
namespace {

// Rule A1.
TEST(AttentionSemaTest, SixLinesAreCompleteAndTheRestHasDefaults) {
  Compiled compiled =
      compile("attention a {\n  query_heads = 32;\n  kv_heads    = 8;\n  head_dim    = 128;\n}\n");
  const Variant &v = compiled.only();
  EXPECT_EQ(compiled.findings, "");
  EXPECT_EQ(v.name, "a");
  EXPECT_EQ(v.ratio(), 4);
  EXPECT_EQ(v.tensors, Tensors::alike(v.tensors.k.dim));
  EXPECT_FALSE(v.withLse);
  EXPECT_TRUE(v.cache.isPaged());
  EXPECT_EQ(v.cache.pageSize, 16);
  EXPECT_EQ(v.cache.order, PageOrder::Nhd);
  EXPECT_DOUBLE_EQ(v.scale, 1 / std::sqrt(128.0));
  EXPECT_FALSE(v.mask || v.score || v.sigmoidBias || v.schedule);
  EXPECT_EQ(v.normalize, Normalize::Softmax);
  EXPECT_TRUE(v.exprs.empty());
}

// Rule A6.
TEST(AttentionSemaTest, TheScaleIsAConstant) {
  EXPECT_EQ(compile(attention("scale = 0.5;")).only().scale, 0.5);
  EXPECT_EQ(compile(attention("scale = 1;")).only().scale, 1);
  EXPECT_EQ(compile(attention("scale = 0;")).errors, 1u);
  EXPECT_EQ(compile(attention("scale = 1e-40;")).errors, 1u) << "it would be flushed to zero";
  EXPECT_EQ(compile(attention("scale = depth;")).errors, 1u);
}

// Rule P1.
TEST(AttentionSemaTest, ScalarParametersMayHaveDefaults) {
  Compiled compiled = compile(attention("param cap : f32 = 30; param n : i32; score = s * cap + n;"));
  const Variant &v = compiled.only();
  ASSERT_EQ(v.params.size(), 2u);
  EXPECT_EQ(v.params[0].defaultValue, 30.0);
  EXPECT_EQ(v.params[0].type, ScalarType::F32);
  EXPECT_FALSE(v.params[1].defaultValue);
  EXPECT_EQ(v.params[1].type, ScalarType::I32);
  EXPECT_EQ(describe(v, *v.score), "(add:f32 (mul:f32 s cap) (to_f32:f32 n))");
}

// Rule P2.
TEST(AttentionSemaTest, ArraysHaveAnElementForEachHead) {
  Compiled compiled = compile(
      attention("param a : f32[query_heads]; param b : i32[kv_heads]; score = s * a[head] + b[kv_head];"));
  const Variant &v = compiled.only();
  EXPECT_EQ(v.params[0].shape, Param::Shape::PerQueryHead);
  EXPECT_EQ(v.params[1].shape, Param::Shape::PerKvHead);
  EXPECT_EQ(describe(v, *v.score), "(add:f32 (mul:f32 s a[]) (to_f32:f32 b[]))");
}

// Rules V1, V5.
TEST(AttentionSemaTest, TreeIsTheMaskThatNeedsNotBeWritten) {
  EXPECT_EQ(maskOf(""), "tree");
  EXPECT_EQ(maskOf("mask = tree;"), "tree");
  EXPECT_EQ(maskOf("mask = kv_pos > 1;"), "(gt:bool kv_pos 1)");
  EXPECT_EQ(maskOf("mask = kv_pos > 1 && tree && kv_pos < 9;"),
            "(and:bool (gt:bool kv_pos 1) (lt:bool kv_pos 9))");
  EXPECT_EQ(maskOf("mask = (tree && kv_pos > 1) && (tree);"), "(gt:bool kv_pos 1)");
}

// Rules V7, F6.
TEST(AttentionSemaTest, PathTakesThePlaceOfTree) {
  const auto boundOf = [](const std::string &items) { return compile(attention(items)).only().bound; };
  EXPECT_EQ(boundOf(""), MaskBound::Tree);
  EXPECT_EQ(boundOf("mask = tree && kv_pos > 1;"), MaskBound::Tree);
  for (const char *mask :
       {"mask = path;", "mask = path && kv_pos > 1;", "mask = kv_pos > 1 && (path && q_pos > 2);"})
    EXPECT_EQ(boundOf(mask), MaskBound::Path) << mask;
  EXPECT_EQ(maskOf("mask = path;"), "tree") << "no condition beside the bound";
  EXPECT_EQ(maskOf("mask = kv_pos > 1 && path;"), "(gt:bool kv_pos 1)");
  // What is declared hides it.
  EXPECT_EQ(boundOf("param path : i32; mask = kv_pos < path;"), MaskBound::Tree);
  EXPECT_EQ(boundOf("let path = kv_pos > 3; mask = path;"), MaskBound::Tree);
  EXPECT_EQ(maskOf("let path = kv_pos > 3; mask = path;"), "(gt:bool kv_pos 3)");
}

// Rule V6.
TEST(AttentionSemaTest, AScoreThatIsSIsNone) {
  EXPECT_FALSE(compile(attention("score = s;")).only().score);
  EXPECT_EQ(scoreOf("score = 1;"), "1f");
}

// Rule N2.
TEST(AttentionSemaTest, SigmoidMayHaveABias) {
  Compiled plain = compile(attention("normalize = sigmoid;"));
  EXPECT_EQ(plain.only().normalize, Normalize::Sigmoid);
  EXPECT_FALSE(plain.only().sigmoidBias);
  Compiled biased = compile(attention("param b : f32; normalize = sigmoid(b - kv_pos);"));
  EXPECT_EQ(describe(biased.only(), *biased.only().sigmoidBias), "(sub:f32 b (to_f32:f32 kv_pos))");
  EXPECT_EQ(compile(attention("normalize = softmax; output = f16 with lse;")).errors, 0u);
}

// Rule N4.
TEST(AttentionSemaTest, SoftmaxMayHaveASinkOfHeadsAndParameters) {
  Compiled compiled = compile(attention(
      "param a : f32[query_heads]; param b : i32; normalize = softmax with sink(a[head] - b * kv_head);"));
  EXPECT_EQ(compiled.errors, 0u);
  const Variant &v = compiled.only();
  EXPECT_EQ(v.normalize, Normalize::Softmax);
  EXPECT_EQ(describe(v, *v.sink), "(sub:f32 a[] (to_f32:f32 (mul:i32 b kv_head)))");
  EXPECT_FALSE(compile(attention("normalize = softmax;")).only().sink);
}

TEST(AttentionSemaTest, TablesAreReadAtAnyNumber) {
  const Compiled compiled =
      compile(attention("param bias : f32[32]; param shift : i32[3];"
                        "score = s + bias[q_pos - kv_pos] * bias[s * 2] + shift[depth];"));
  const Variant &v = compiled.only();
  EXPECT_EQ(v.params[0].shape, Param::Shape::Table);
  EXPECT_EQ(v.params[0].size, 32);
  EXPECT_EQ(v.params[1].size, 3);
  EXPECT_EQ(describe(v, *v.score),
            "(add:f32 (add:f32 s (mul:f32 (table_element:f32 bias (sub:i32 q_pos kv_pos)) "
            "(table_element:f32 bias (mul:f32 s 2f)))) (to_f32:f32 (table_element:i32 shift depth)))");
}

// Rules P4 and P5.
TEST(AttentionSemaTest, ArraysOverTokensAndQueriesAreReadOfWhatIsAtHand) {
  const Compiled compiled = compile(attention(
      "param doc : i32[tokens]; param gain : f32[tokens]; param own : i32[queries]; let mine = own[query];"
      "mask = doc[token] == mine; score = s * gain[token]; query = x * mine;"));
  EXPECT_EQ(compiled.findings, "");
  const Variant &v = compiled.only();
  EXPECT_EQ(v.params[0].shape, Param::Shape::PerToken);
  EXPECT_EQ(v.params[2].shape, Param::Shape::PerQuery);
  EXPECT_EQ(v.tokenParams(), 2);
  EXPECT_EQ(describe(v, *v.mask), "(eq:bool doc[] own[])");
  EXPECT_EQ(describe(v, *v.score), "(mul:f32 s gain[])");
  EXPECT_EQ(describe(v, *v.query), "(mul:f32 x (to_f32:f32 own[]))");
}

// Rules P6, H8 and H9.
TEST(AttentionSemaTest, AValueIsItsElementTimesAFactorOfItsToken) {
  const auto factorOf = [](const std::string &value) {
    const Compiled compiled =
        compile("value twice(a: f32[tokens, kv_heads]) = 2 * a[token, kv_head];" +
                attention("param ks : f32[tokens, kv_heads]; param gain : f32[tokens]; let y = x;"
                          "score = s * ks[token, kv_head] + gain[token]; value = " +
                          value + ";"));
    EXPECT_EQ(compiled.findings, "");
    const Variant &v = compiled.only();
    EXPECT_EQ(v.params[0].shape, Param::Shape::PerTokenAndHead);
    EXPECT_EQ(v.elementsOf(v.params[0]), v.kvHeads);
    EXPECT_EQ(v.elementsOf(v.params[1]), 1);
    EXPECT_EQ(v.tokenParams(), 2);
    return v.valueFactor ? describe(v, *v.valueFactor) : "none";
  };
  EXPECT_EQ(factorOf("x * ks[token, kv_head]"), "ks[]");
  EXPECT_EQ(factorOf("gain[token] * (ks[token, kv_head] * y)"), "(mul:f32 ks[] gain[])");
  EXPECT_EQ(factorOf("-x / gain[token]"), "(div:f32 -1f gain[])");
  EXPECT_EQ(factorOf("x * twice(ks) * (kv_pos + depth)"),
            "(mul:f32 (mul:f32 2f ks[]) (to_f32:f32 (add:i32 kv_pos depth)))");
  EXPECT_EQ(factorOf("x"), "none");
  EXPECT_EQ(factorOf("x / 2 * 2"), "none");
  // A word where a property begins, and free elsewhere, as it was before there was such a property.
  EXPECT_EQ(compile(attention("param value : f32; score = s * value;")).findings, "");
}

TEST(AttentionSemaTest, FunctionsTakeArraysOverTokensAndQueries) {
  const Compiled compiled =
      compile("mask same(doc: i32[tokens], own: i32[queries]) = doc[token] == own[query];" +
              attention("param a : i32[tokens]; param b : i32[queries]; mask = same(a, b);"));
  EXPECT_EQ(compiled.findings, "");
  EXPECT_EQ(describe(compiled.only(), *compiled.only().mask), "(eq:bool a[] b[])");
}

TEST(AttentionSemaTest, TokenIsNoWordWhereNothingIsIndexedByIt) {
  const Compiled compiled =
      compile(attention("param token : i32; let tokens = token + 1; mask = kv_pos > tokens;"));
  EXPECT_EQ(compiled.findings, "");
}

// Rules H1, H2, H3, H4.
TEST(AttentionSemaTest, ElementsOfQueriesAndOutputsAreExpressions) {
  Compiled compiled = compile(attention("param w : f32[64]; param g : f32[kv_heads];"
                                        "query = x * w[dim] + x_half - x_pair / x_rms + q_pos + head;"
                                        "output = x * g[kv_head] + query as f16 with lse;"));
  const Variant &v = compiled.only();
  EXPECT_EQ(compiled.findings, "");
  ASSERT_TRUE(v.query && v.output);
  EXPECT_EQ(describe(v, *v.query),
            "(add:f32 (add:f32 (sub:f32 (add:f32 (mul:f32 x (table_element:f32 w dim)) x_half) "
            "(div:f32 x_pair x_rms)) (to_f32:f32 q_pos)) (to_f32:f32 head))");
  EXPECT_EQ(describe(v, *v.output), "(add:f32 (mul:f32 x g[]) (to_f32:f32 query))");
  EXPECT_EQ(v.tensors.out.dtype, DType::F16);
  EXPECT_TRUE(v.withLse);
}

// Rules H6, H7.
TEST(AttentionSemaTest, ElementsOfKeysAreExpressions) {
  const Compiled compiled =
      compile(attention("param w : f32[64]; param g : f32[kv_heads];"
                        "key = x * w[dim] * g[kv_head] + x_half - x_pair / x_rms + kv_pos;"));
  const Variant &v = compiled.only();
  EXPECT_EQ(compiled.findings, "");
  ASSERT_TRUE(v.key && !v.query);
  EXPECT_EQ(describe(v, *v.key), "(add:f32 (sub:f32 (add:f32 (mul:f32 (mul:f32 x (table_element:f32 w dim)) "
                                 "g[]) x_half) (div:f32 x_pair x_rms)) (to_f32:f32 kv_pos))");
}

// Rule H7.
TEST(AttentionSemaTest, APositionIsThatOfTheRowThatAHookIsOf) {
  const Compiled compiled = compile("query turned(rate: f32) = x * cos(pos * rate) + x_half;"
                                    "let both = turned(0.5);" +
                                    attention("query = both; key = both;"));
  const Variant &v = compiled.only();
  EXPECT_EQ(compiled.findings, "");
  const auto turnedBy = [](const std::string &position) {
    return "(add:f32 (mul:f32 x (cos:f32 (mul:f32 (to_f32:f32 " + position + ") 0.5f))) x_half)";
  };
  EXPECT_EQ(describe(v, *v.query), turnedBy("q_pos"));
  EXPECT_EQ(describe(v, *v.key), turnedBy("kv_pos"));
  const Compiled hidden = compile(attention("param pos : f32; key = x * pos;"));
  EXPECT_EQ(hidden.only().exprs[hidden.only().exprs[*hidden.only().key].operands[1]].op, ExprOp::Param);
}

// Rule A1.
TEST(AttentionSemaTest, AnElementAsItIsIsNoHook) {
  for (const char *text :
       {"", "query = x; key = x; output = x;", "query = x; output = x as bf16;", "output = f16;"}) {
    Compiled compiled = compile(attention(text));
    EXPECT_FALSE(compiled.only().query || compiled.only().key || compiled.only().output) << text;
    EXPECT_TRUE(compiled.only().exprs.empty()) << text;
  }
}

// Rule A8.
TEST(AttentionSemaTest, AnHeirsOutputReplacesAllOfIt) {
  Compiled compiled = compile(attention("output = 2 * x as f16 with lse; query = -x;") +
                              "attention b : a { output = bf16; }");
  ASSERT_EQ(compiled.variants.size(), 2u);
  EXPECT_FALSE(compiled.variants[1].output || compiled.variants[1].withLse);
  EXPECT_EQ(compiled.variants[1].tensors.out.dtype, DType::BF16);
  EXPECT_TRUE(compiled.variants[1].query);
}

// Rule F6.
TEST(AttentionSemaTest, WhatIsDeclaredHidesTheNamesOfAnElement) {
  Compiled compiled = compile(attention("param x : f32; let dim = 3; score = s + x + dim; query = x * dim;"));
  const Variant &v = compiled.only();
  EXPECT_EQ(describe(v, *v.score), "(add:f32 (add:f32 s x) 3f)");
  EXPECT_EQ(v.exprs[v.exprs[*v.query].operands[0]].op, ExprOp::Param);
}

} // namespace
} // namespace deft::spec::testing
