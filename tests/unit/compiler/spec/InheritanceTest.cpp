#include "tests/unit/compiler/spec/SpecTesting.h"

namespace deft::spec::testing {
namespace {

const std::string kBase = "attention base { query_heads = 8; kv_heads = 4; head_dim = 64; dtype = f16;"
                          "  scale = 1 / head_dim; param cap : f32 = 2.0; let w = 4;"
                          "  mask near(x: i32) = kv_pos > x; mask = near(w); score = s * cap; }\n";

Variant heir(const std::string &items, const std::string &more = "") {
  Compiled compiled = compile(kBase + more + "attention heir : base { " + items + " }");
  EXPECT_EQ(compiled.findings, "");
  return compiled.variants.empty() ? Variant() : compiled.variants.back();
}

// Rule A8.
TEST(InheritanceTest, AnHeirHasAllThatItDoesNotGive) {
  Variant v = heir("");
  EXPECT_EQ(v.name, "heir");
  EXPECT_EQ(v.queryHeads, 8);
  EXPECT_EQ(v.tensors.k.dtype, DType::F16);
  EXPECT_EQ(v.scale, 1.0 / 64);
  EXPECT_EQ(describe(v, *v.mask), "(gt:bool kv_pos 4)");
}

// Rule A8.
TEST(InheritanceTest, WhatAnHeirGivesIsUsedInInheritedTextToo) {
  Variant v = heir("head_dim = 128; let w = 9; param cap : f32 = 5.0;");
  EXPECT_EQ(v.scale, 1.0 / 128);
  EXPECT_EQ(describe(v, *v.mask), "(gt:bool kv_pos 9)");
  ASSERT_EQ(v.params.size(), 1u);
  EXPECT_EQ(v.params[0].defaultValue, 5.0);
  EXPECT_EQ(describe(heir("mask near(x: i32) = kv_pos < x;"), 2), "(lt:bool kv_pos 4)");
}

TEST(InheritanceTest, ALetMayTakeTheTurnOfAParameter) {
  Variant v = heir("let cap = 3.0;");
  EXPECT_TRUE(v.params.empty());
  EXPECT_EQ(describe(v, *v.score), "(mul:f32 s 3f)");
}

// Rule E10: in an heir an inherited `let` is usable anywhere.
TEST(InheritanceTest, InheritedLetsAreKnownFromTheStart) {
  Variant v = heir("let x = w + 1; mask = kv_pos > x;");
  EXPECT_EQ(describe(v, *v.mask), "(gt:bool kv_pos 5)");
}

TEST(InheritanceTest, TheNearestAncestorWinsOverSeveralSteps) {
  Variant v = heir("", "");
  Compiled compiled = compile(kBase + "attention mid : base { dtype = bf16; let w = 1; }\n"
                                      "attention leaf : mid { let w = 2; }\n");
  ASSERT_EQ(compiled.variants.size(), 3u);
  EXPECT_EQ(compiled.variants[2].tensors.k.dtype, DType::BF16);
  EXPECT_EQ(describe(compiled.variants[2], *compiled.variants[2].mask), "(gt:bool kv_pos 2)");
  EXPECT_EQ(describe(compiled.variants[0], *compiled.variants[0].mask), "(gt:bool kv_pos 4)")
      << "the base is as it was";
}

TEST(InheritanceTest, AScheduleIsReplacedAsAWhole) {
  Compiled compiled = compile("attention a { query_heads = 8; kv_heads = 8; head_dim = 64; schedule { "
                              "partition = node; chunk = 64; } }"
                              "attention b : a { schedule { chunk = 128; } }");
  ASSERT_EQ(compiled.variants.size(), 2u);
  EXPECT_TRUE(compiled.variants[1].schedule->partitions.empty());
  EXPECT_EQ(compiled.variants[1].schedule->chunk->values, std::vector<int>{128});
}

// Rule D4.
TEST(InheritanceTest, AnErrorInInheritedTextIsSaidOnceAndNamesTheHeirWhoBroughtItUp) {
  Compiled both = compile("attention a { query_heads = 8; kv_heads = 8; head_dim = 64; mask = nope; }\n"
                          "attention b : a { dtype = f16; }\n");
  EXPECT_EQ(both.errors, 1u) << both.findings;
  Compiled heirOnly = compile(kBase + "attention b : base { let w = 1.5; }\n");
  EXPECT_EQ(heirOnly.errors, 1u);
  EXPECT_NE(heirOnly.findings.find("note: inherited by `b`"), std::string::npos) << heirOnly.findings;
}

} // namespace
} // namespace deft::spec::testing
