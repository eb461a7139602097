/// Which scores have a form that the device computes in a shorter way, however they are written.

#include "compiler/codegen/cuda/hooks/ScoreForm.h"

#include "tests/unit/compiler/transforms/HookTesting.h"

#include <gtest/gtest.h>

namespace deft::codegen::cuda {
namespace {

using test::ImportedHooks;

const std::string kSlope = "param slope : f32[query_heads]; score = ";
const std::string kCap = "param cap : f32; score = ";

/// "capped", "sloped", "falling", "one cap": what the form is; "none".
std::string formOf(const std::string &items) {
  ImportedHooks hooks(items);
  const auto form = scoreForm(hooks.attention.getScore());
  if (!form)
    return "none";
  std::string text;
  const auto add = [&](bool is, const char *word) {
    if (is)
      text += (text.empty() ? "" : ", ") + std::string(word);
  };
  add(form->isCapped, "capped");
  add(form->hasOneCap, "one cap");
  add(form->isSloped, "sloped");
  add(form->isFalling, "falling");
  return text;
}

TEST(ScoreFormTest, ACapIsAProductOfATangent) {
  EXPECT_EQ(formOf("score = tanh(s);"), "capped, one cap");
  EXPECT_EQ(formOf("score = 30 * tanh(s / 30);"), "capped, one cap");
  EXPECT_EQ(formOf(kCap + "tanh(s / cap) * cap;"), "capped, one cap");
  EXPECT_EQ(formOf("param cap : f32[query_heads]; score = cap[head] * tanh(s);"), "capped")
      << "each row has its own";
  EXPECT_EQ(formOf(kCap + "tanh(s * s) * cap;"), "none");
  EXPECT_EQ(formOf(kCap + "tanh(s + 1) * cap;"), "none");
  EXPECT_EQ(formOf("score = tanh(s * kv_pos);"), "none");
}

TEST(ScoreFormTest, ASlopeRisesOrFallsWithTheDistance) {
  EXPECT_EQ(formOf(kSlope + "s + slope[head] * (kv_pos - q_pos);"), "sloped");
  EXPECT_EQ(formOf(kSlope + "(kv_pos - q_pos) * slope[head] + s;"), "sloped");
  EXPECT_EQ(formOf(kSlope + "s - slope[head] * (q_pos - kv_pos);"), "sloped") << "falls twice";
  EXPECT_EQ(formOf(kSlope + "s + slope[head] * (q_pos - kv_pos);"), "sloped, falling");
  EXPECT_EQ(formOf(kSlope + "s - slope[head] * (kv_pos - q_pos);"), "sloped, falling");
  EXPECT_EQ(formOf("score = s + (kv_pos - query);"), "sloped") << "of 1, from another number of the row";
}

TEST(ScoreFormTest, BothMayBeThere) {
  EXPECT_EQ(formOf(kSlope + "20 * tanh(s / 20) - slope[head] * (q_pos - kv_pos);"),
            "capped, one cap, sloped");
}

TEST(ScoreFormTest, WhatVariesOtherwiseHasNoForm) {
  EXPECT_EQ(formOf("score = s * 2;"), "none");
  EXPECT_EQ(formOf(kSlope + "s + slope[head] * (kv_pos - depth);"), "none") << "a depth is the token's";
  EXPECT_EQ(formOf(kSlope + "s + slope[head] * (kv_pos + q_pos);"), "none");
  EXPECT_EQ(formOf(kSlope + "s + slope[head] * (2 * kv_pos - q_pos);"), "none");
  EXPECT_EQ(formOf(kSlope + "slope[head] * (kv_pos - q_pos) - s;"), "none");
  EXPECT_EQ(formOf("mask = kv_pos > 3;"), "none");
}

/// A distance that wraps around in the language does not in float arithmetic.
TEST(ScoreFormTest, ADistanceThatMayWrapHasNoForm) {
  EXPECT_EQ(formOf("param origin : i32; score = s + (kv_pos - origin);"), "none");
  EXPECT_EQ(formOf("param slope : f32[query_heads]; score = s + slope[head] * (kv_pos - query * 3);"),
            "none");
}

TEST(ScoreFormTest, TheOriginIsWhatTheDistanceIsFrom) {
  ImportedHooks hooks(kSlope + "s + slope[head] * (q_pos - kv_pos);");
  mlir::Region &score = hooks.attention.getScore();
  const auto form = scoreForm(score);
  ASSERT_TRUE(form);
  EXPECT_EQ(form->origin, score.getArgument(dialect::kArgQPos));
  EXPECT_FALSE(form->cap || form->rate) << "1 of each";
  EXPECT_TRUE(form->slope);
}

} // namespace
} // namespace deft::codegen::cuda
