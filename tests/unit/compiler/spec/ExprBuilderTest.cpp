#include "compiler/spec/ExprBuilder.h"

#include <gtest/gtest.h>
#include <limits>

namespace deft::spec {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

double folded(ExprOp op, ScalarType type, std::vector<double> operands) {
  Folded result = fold(op, type, operands);
  EXPECT_EQ(result.problem, "");
  return result.value;
}

// Rule E5.
TEST(FoldTest, RemainderHasTheSignOfItsLeftOperandAndOfZeroIsZero) {
  EXPECT_EQ(folded(ExprOp::Rem, ScalarType::I32, {7, 3}), 1);
  EXPECT_EQ(folded(ExprOp::Rem, ScalarType::I32, {-7, 3}), -1);
  EXPECT_EQ(folded(ExprOp::Rem, ScalarType::I32, {7, -3}), 1);
  EXPECT_EQ(folded(ExprOp::Rem, ScalarType::I32, {-6, 3}), 0);
  EXPECT_EQ(folded(ExprOp::Rem, ScalarType::I32, {7, 0}), 0);
  EXPECT_EQ(folded(ExprOp::Rem, ScalarType::I32, {-2147483648.0, -1}), 0);
  EXPECT_EQ(folded(ExprOp::FloorDiv, ScalarType::I32, {7, 3}), 2);
  EXPECT_EQ(folded(ExprOp::FloorDiv, ScalarType::I32, {-7, 3}), -3);
  EXPECT_EQ(folded(ExprOp::FloorDiv, ScalarType::I32, {7, -3}), -3);
  EXPECT_EQ(folded(ExprOp::FloorDiv, ScalarType::I32, {-6, 3}), -2);
  EXPECT_EQ(folded(ExprOp::FloorDiv, ScalarType::I32, {7, 0}), 0);
  EXPECT_NE(fold(ExprOp::FloorDiv, ScalarType::I32, {-2147483648.0, -1}).problem, "");
}

// Rules E4, E8.
TEST(FoldTest, WhatDoesNotFitItsTypeIsAProblem) {
  EXPECT_EQ(folded(ExprOp::Add, ScalarType::I32, {2147483646, 1}), 2147483647);
  EXPECT_NE(fold(ExprOp::Add, ScalarType::I32, {2147483647, 1}).problem, "");
  EXPECT_NE(fold(ExprOp::Neg, ScalarType::I32, {-2147483648.0}).problem, "");
  EXPECT_NE(fold(ExprOp::Mul, ScalarType::F32, {1e38, 10}).problem, "");
  EXPECT_NE(fold(ExprOp::Div, ScalarType::F32, {1, 0}).problem, "");
  EXPECT_NE(fold(ExprOp::Log, ScalarType::F32, {-1}).problem, "");
  EXPECT_NE(fold(ExprOp::Sub, ScalarType::F32, {kInf, kInf}).problem, "");
  EXPECT_EQ(folded(ExprOp::Neg, ScalarType::F32, {kInf}), -kInf);
  EXPECT_EQ(folded(ExprOp::Exp, ScalarType::F32, {-kInf}), 0);
}

// Rule E9.
TEST(FoldTest, FunctionsMeanWhatTheirNamesSay) {
  auto f = [](ExprOp op, double x) { return folded(op, ScalarType::F32, {x}); };
  EXPECT_DOUBLE_EQ(f(ExprOp::Exp, 1), 2.718281828459045);
  EXPECT_DOUBLE_EQ(f(ExprOp::Exp2, 3), 8);
  EXPECT_DOUBLE_EQ(f(ExprOp::Log, 10), 2.302585092994046);
  EXPECT_DOUBLE_EQ(f(ExprOp::Log2, 8), 3);
  EXPECT_DOUBLE_EQ(f(ExprOp::Tanh, 0.5), 0.46211715726000973);
  EXPECT_DOUBLE_EQ(f(ExprOp::Sigmoid, 2), 0.8807970779778823);
  EXPECT_DOUBLE_EQ(f(ExprOp::Sqrt, 9), 3);
  EXPECT_DOUBLE_EQ(f(ExprOp::Rsqrt, 4), 0.5);
  EXPECT_DOUBLE_EQ(f(ExprOp::Floor, -1.5), -2);
  EXPECT_DOUBLE_EQ(f(ExprOp::Sin, 0.5), 0.47942553860420301);
  EXPECT_DOUBLE_EQ(f(ExprOp::Cos, 0.5), 0.87758256189037276);
  EXPECT_EQ(f(ExprOp::Abs, -2), 2);
  EXPECT_EQ(folded(ExprOp::Min, ScalarType::I32, {3, -4}), -4);
  EXPECT_EQ(folded(ExprOp::Max, ScalarType::F32, {3, -kInf}), 3);
}

TEST(ExprBuilderTest, EqualOperationsAreOneNode) {
  std::vector<Expr> exprs;
  ExprBuilder builder(exprs);
  std::string problem;
  ExprId value = builder.builtin(Builtin::KvPos, {});
  for (int i = 0; i < 60; ++i) // 2^60 additions if they were copied
    value = builder.apply(ExprOp::Add, ScalarType::I32, {value, value}, {}, problem);
  EXPECT_EQ(exprs.size(), 61u);
  EXPECT_EQ(builder.builtin(Builtin::KvPos, {}), 0u);
}

TEST(ExprBuilderTest, LogicWithAConstantIsSimplified) {
  std::vector<Expr> exprs;
  ExprBuilder builder(exprs);
  std::string problem;
  ExprId position = builder.builtin(Builtin::KvPos, {});
  ExprId zero = builder.constant(ScalarType::I32, 0, {});
  ExprId some = builder.apply(ExprOp::Gt, ScalarType::Bool, {position, zero}, {}, problem);
  ExprId yes = builder.constant(ScalarType::Bool, 1, {}), no = builder.constant(ScalarType::Bool, 0, {});
  auto apply = [&](ExprOp op, ExprId a, ExprId b) {
    return builder.apply(op, ScalarType::Bool, {a, b}, {}, problem);
  };
  EXPECT_EQ(apply(ExprOp::And, yes, some), some);
  EXPECT_EQ(apply(ExprOp::And, some, no), no);
  EXPECT_EQ(apply(ExprOp::Or, some, yes), yes);
  EXPECT_EQ(apply(ExprOp::Or, no, some), some);
  EXPECT_EQ(builder.apply(ExprOp::Select, ScalarType::I32, {yes, position, zero}, {}, problem), position);
  EXPECT_EQ(builder.apply(ExprOp::Select, ScalarType::I32, {no, position, zero}, {}, problem), zero);
}

TEST(ExprBuilderTest, CompactingKeepsWhatIsReachedInOrder) {
  std::vector<Expr> exprs;
  ExprBuilder builder(exprs);
  std::string problem;
  builder.builtin(Builtin::Depth, {});
  ExprId a = builder.builtin(Builtin::KvPos, {});
  builder.constant(ScalarType::I32, 9, {});
  ExprId root = builder.apply(ExprOp::Abs, ScalarType::I32, {a}, {}, problem);
  std::vector<Expr> kept = compactExprs(exprs, {&root});
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(root, 1u);
  EXPECT_EQ(kept[1].operands, std::vector<ExprId>{0});
  EXPECT_TRUE(reaches(kept, root, [](const Expr &e) { return e.builtin == Builtin::KvPos; }));
  EXPECT_FALSE(reaches(kept, root, [](const Expr &e) { return e.builtin == Builtin::Depth; }));
}

} // namespace
} // namespace deft::spec
