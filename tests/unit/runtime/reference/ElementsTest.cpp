#include "runtime/reference/Elements.h"

#include "runtime/exec/Half.h"
#include "tests/support/VariantBuilder.h"

#include <gtest/gtest.h>

#include <cmath>

namespace deft::reference {
namespace {

using spec::Builtin;
using spec::ExprId;
using spec::ExprOp;
using spec::ScalarType;

struct Small : test::VariantBuilder {
  Small() : VariantBuilder(2, 1, 4) {}

  ExprId f32(ExprOp op_, ExprId a, ExprId b) { return op(op_, ScalarType::F32, {a, b}); }
  ExprId real(Builtin name) { return op(ExprOp::ToF32, ScalarType::F32, {read(name)}); }

  exec::Inputs inputs;
};

// Rule H2.
TEST(ElementsTest, NamesAreOfTheRowAsItWasGiven) {
  const std::vector<double> row = {1, -2, 4, 8};
  const auto made = [&](Builtin name) {
    Small small;
    small.variant.query = spec::typeOf(name) == ScalarType::F32 ? small.read(name) : small.real(name);
    return Elements(small.variant, small.inputs, Precision::Exact).query(row, {.qPos = 9, .head = 1});
  };
  using Row = std::vector<double>;
  EXPECT_EQ(made(Builtin::X), row);
  EXPECT_EQ(made(Builtin::XHalf), Row({4, 8, 1, -2}));
  EXPECT_EQ(made(Builtin::XPair), Row({-2, 1, 8, 4}));
  EXPECT_EQ(made(Builtin::Dim), Row({0, 1, 2, 3}));
  EXPECT_EQ(made(Builtin::QPos), Row({9, 9, 9, 9}));
  for (const double rms : made(Builtin::XRms))
    EXPECT_EQ(rms, exec::roundTo(std::sqrt(85.0 / 4), spec::DType::BF16));
}

// Rules H6, H7.
TEST(ElementsTest, KeysAreMadeOfTheirOwnRowsAndPositions) {
  Small small;
  const ExprId moved = small.f32(ExprOp::Add, small.read(Builtin::XHalf), small.real(Builtin::KvPos));
  small.variant.key = small.f32(ExprOp::Add, moved, small.real(Builtin::KvHead));
  Elements elements(small.variant, small.inputs, Precision::Exact);
  const Site site{.qPos = 90, .kvPos = 7, .kvHead = 2};
  EXPECT_EQ(elements.key({1, -2, 4, 8}, site), std::vector<double>({13, 17, 10, 7}));
  EXPECT_EQ(elements.query({1, -2, 4, 8}, site), std::vector<double>({1, -2, 4, 8}));
}

// Rule H1.
TEST(ElementsTest, WhatAQueryBecomesIsRoundedToItsDtypeInEveryPrecision) {
  Small small;
  small.variant.query = small.f32(ExprOp::Mul, small.read(Builtin::X), small.constant(1.0 / 3));
  for (const Precision precision : {Precision::Exact, Precision::Plain, Precision::Single})
    EXPECT_EQ(Elements(small.variant, small.inputs, precision).query({1, 2, 4, 8}, {})[0],
              exec::roundTo(1.0 / 3, spec::DType::BF16));
}

TEST(ElementsTest, ElementsBetweenTwoNumbersMayBeEither) {
  Small small;
  small.variant.query = // 1 becomes the middle of 1 and 1 + 2^-7
      small.f32(ExprOp::Mul, small.read(Builtin::X), small.constant(1 + 0x1p-8));
  std::vector<EitherWay> found;
  const auto made =
      Elements(small.variant, small.inputs, Precision::Exact).query({1, 1.5, 0, -1}, {}, &found);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].dim, 0u);
  EXPECT_EQ(std::fabs(found[0].other - made[0]), 0x1p-7);
  EXPECT_EQ(found[1].dim, 3u);

  found.clear();
  small.variant.query = small.f32(ExprOp::Mul, small.read(Builtin::X), small.constant(1.25));
  (void)Elements(small.variant, small.inputs, Precision::Exact).query({1, 1.5, 0, -1}, {}, &found);
  EXPECT_TRUE(found.empty());
}

/// An angle of 1000 has no digits behind the point in bf16, and none of what is computed here is.
TEST(ElementsTest, AnglesArePreciseInThePlainEvaluation) {
  Small small;
  const ExprId angle = small.f32(ExprOp::Mul, small.real(Builtin::QPos), small.constant(0.3));
  small.variant.query = small.op(ExprOp::Sin, ScalarType::F32, {angle});
  EXPECT_NEAR(Elements(small.variant, small.inputs, Precision::Plain).query({0, 0, 0, 0}, {.qPos = 3333})[0],
              std::sin(999.9), 0.004);
}

// Rule H3.
TEST(ElementsTest, AnOutputIsOfEachElementAndItsPlace) {
  Small small;
  small.variant.output = small.f32(ExprOp::Mul, small.read(Builtin::X), small.real(Builtin::Dim));
  double noise = 0;
  Elements elements(small.variant, small.inputs, Precision::Exact);
  EXPECT_EQ(elements.output({5, 6, 7, 8}, {}, noise), std::vector<double>({0, 6, 14, 24}));
  EXPECT_EQ(elements.output(7, 2, {}), 14);
}

TEST(ElementsTest, NoiseIsThatOfWhatTheHookMakes) {
  Small plain, half, gated;
  double noise = 0.01;
  EXPECT_EQ(Elements(plain.variant, plain.inputs, Precision::Exact).output({3, 4, 0, 0}, {}, noise).size(),
            4u);
  EXPECT_EQ(noise, 0.01); // no hook
  // A factor of all leaves what is relative, but for the output's own rounding.
  half.variant.output = half.f32(ExprOp::Mul, half.read(Builtin::X), half.constant(0.5));
  (void)Elements(half.variant, half.inputs, Precision::Exact).output({3, 4, 0, 0}, {}, noise);
  EXPECT_GT(noise, 0.01);
  EXPECT_LT(noise, 0.02);
  // Of a row whose large columns are hidden, what is left is much less certain.
  const ExprId isLast = gated.op(ExprOp::Gt, ScalarType::Bool, {gated.read(Builtin::Dim), gated.integer(2)});
  gated.variant.output =
      gated.op(ExprOp::Select, ScalarType::F32, {isLast, gated.read(Builtin::X), gated.constant(0)});
  noise = 0.01;
  (void)Elements(gated.variant, gated.inputs, Precision::Exact).output({3, 4, 0, 0.01}, {}, noise);
  EXPECT_GT(noise, 1);
}

} // namespace
} // namespace deft::reference
