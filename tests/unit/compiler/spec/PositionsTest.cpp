#include "compiler/spec/Positions.h"

#include "tests/unit/compiler/spec/SpecTesting.h"

#include <gtest/gtest.h>

namespace deft::spec::testing {
namespace {

Variant variantOf(const std::string &items) {
  const Compiled compiled = compile(attention(items));
  EXPECT_EQ(compiled.findings, "");
  return compiled.only();
}

/// Arenas are what hashes that are kept are made of.
TEST(PositionsTest, APositionIsThatNameInItsPlace) {
  for (const auto &[general, own] :
       {std::pair("query = pos * x + dim;", "query = q_pos * x + dim;"),
        std::pair("key = x_half * pos + kv_pos;", "key = x_half * kv_pos + kv_pos;"),
        std::pair("query = x + pos; score = s + q_pos;", "query = x + q_pos; score = s + q_pos;"),
        std::pair("query = sin(pos * 2.0) * x + 2.0 * dim;", "query = sin(q_pos * 2.0) * x + 2.0 * dim;")}) {
    const Variant a = variantOf(general), b = variantOf(own);
    ASSERT_EQ(a.exprs.size(), b.exprs.size()) << general;
    for (std::size_t id = 0; id < a.exprs.size(); ++id) {
      EXPECT_EQ(a.exprs[id].op, b.exprs[id].op) << general;
      EXPECT_EQ(a.exprs[id].builtin, b.exprs[id].builtin) << general;
      EXPECT_EQ(a.exprs[id].operands, b.exprs[id].operands) << general;
    }
    EXPECT_EQ(a.query, b.query);
    EXPECT_EQ(a.key, b.key);
    EXPECT_EQ(a.score, b.score);
  }
}

TEST(PositionsTest, WhatHooksShareStaysShared) {
  const Variant v =
      variantOf("let weight = exp(dim * 0.5); query = x * weight * pos; key = x * weight * pos;");
  const auto count = [&](ExprOp op) {
    return std::count_if(v.exprs.begin(), v.exprs.end(), [&](const Expr &expr) { return expr.op == op; });
  };
  EXPECT_EQ(count(ExprOp::Exp), 1);
  EXPECT_EQ(count(ExprOp::Builtin), 4); // x, dim, q_pos and kv_pos
  EXPECT_NE(v.query, v.key);
}

} // namespace
} // namespace deft::spec::testing
