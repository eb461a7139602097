#include "compiler/codegen/cuda/hooks/RowValues.h"

#include "tests/unit/compiler/transforms/HookTesting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deft::codegen::cuda {
namespace {

using test::ImportedHooks;
using testing::ElementsAre;
using testing::IsEmpty;

/// What the values are computed by, "arith.mulf"; of an argument "argument".
std::vector<std::string> valuesOf(const std::string &items, bool ofMask = false) {
  ImportedHooks hooks(items);
  std::vector<std::string> names;
  for (const mlir::Value value : rowValues(ofMask ? hooks.attention.getMask() : hooks.attention.getScore()))
    names.push_back(value.getDefiningOp() ? value.getDefiningOp()->getName().getStringRef().str()
                                          : "argument");
  return names;
}

TEST(RowValuesTest, WhatIsTheSameForARowIsTakenWhereTokensReadIt) {
  EXPECT_THAT(valuesOf("param slope : f32[query_heads]; score = s + slope[head];"),
              ElementsAre("deft.param_element"));
  EXPECT_THAT(valuesOf("param slope : f32[query_heads]; score = s + slope[head] * slope[head];"),
              ElementsAre("arith.mulf"))
      << "the product, and not what it is of";
  EXPECT_THAT(valuesOf("score = s * (q_pos + 1);"), ElementsAre("arith.sitofp"));
  EXPECT_THAT(valuesOf("mask = kv_pos > q_pos;", true), ElementsAre("argument"));
  EXPECT_THAT(valuesOf("mask = q_pos > 5 && kv_pos > 3;", true), ElementsAre("arith.cmpi"));
}

TEST(RowValuesTest, WhatIsAtHandStaysOut) {
  EXPECT_THAT(valuesOf("param cap : f32; score = s * cap + 2;"), IsEmpty());
  EXPECT_THAT(valuesOf("score = s + kv_head;"), ElementsAre("arith.sitofp")) << "its conversion is not";
  EXPECT_THAT(valuesOf("mask = kv_pos > kv_head;", true), IsEmpty());
  EXPECT_THAT(valuesOf("param cap : f32; score = s * exp(cap);"), ElementsAre("math.exp"));
  EXPECT_THAT(valuesOf("score = s * kv_pos;"), IsEmpty()) << "nothing of it is a row's";
}

TEST(RowValuesTest, EachValueIsTakenOnce) {
  EXPECT_THAT(valuesOf("param slope : f32[query_heads]; score = slope[head] * s + slope[head] * kv_pos;"),
              ElementsAre("deft.param_element"));
  EXPECT_THAT(valuesOf("mask = kv_pos > 3;"), IsEmpty()) << "there is no score";
}

} // namespace
} // namespace deft::codegen::cuda
