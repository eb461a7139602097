#include "runtime/reference/Evaluate.h"

#include "compiler/spec/ExprBuilder.h"
#include "tests/support/VariantBuilder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <limits>

namespace deft::reference {
namespace {

using spec::Builtin;
using spec::ExprOp;
using spec::ScalarType;
using test::VariantBuilder;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double evalF32(ExprOp op, double a, double b = 0) {
  VariantBuilder build;
  const auto id = build.op(op, ScalarType::F32, {build.constant(a), build.constant(b)});
  return Evaluator(build.variant, {}, Precision::Exact).f32(id, {});
}

int evalI32(ExprOp op, int a, int b = 0) {
  VariantBuilder build;
  const auto value = build.op(op, ScalarType::I32, {build.integer(a), build.integer(b)});
  const auto id = build.op(ExprOp::ToF32, ScalarType::F32, {value});
  return static_cast<int>(Evaluator(build.variant, {}, Precision::Exact).f32(id, {}));
}

bool evalCompare(ExprOp op, double a, double b) {
  VariantBuilder build;
  const auto id = build.op(op, ScalarType::Bool, {build.constant(a), build.constant(b)});
  return Evaluator(build.variant, {}, Precision::Exact).boolean(id, {});
}

TEST(EvaluateTest, FloatArithmetic) {
  EXPECT_EQ(evalF32(ExprOp::Neg, 3), -3);
  EXPECT_EQ(evalF32(ExprOp::Add, 3, 4), 7);
  EXPECT_EQ(evalF32(ExprOp::Sub, 3, 4), -1);
  EXPECT_EQ(evalF32(ExprOp::Mul, 3, 4), 12);
  EXPECT_EQ(evalF32(ExprOp::Div, 3, 4), 0.75);
  EXPECT_EQ(evalF32(ExprOp::Div, 3, 0), kInfinity);
  EXPECT_EQ(evalF32(ExprOp::Min, 3, -4), -4);
  EXPECT_EQ(evalF32(ExprOp::Max, 3, -4), 3);
  EXPECT_EQ(evalF32(ExprOp::Abs, -4), 4);
}

TEST(EvaluateTest, Functions) {
  EXPECT_DOUBLE_EQ(evalF32(ExprOp::Exp, 1), std::exp(1.0));
  EXPECT_DOUBLE_EQ(evalF32(ExprOp::Exp2, 3), 8);
  EXPECT_DOUBLE_EQ(evalF32(ExprOp::Log, 10), std::log(10.0));
  EXPECT_DOUBLE_EQ(evalF32(ExprOp::Log2, 8), 3);
  EXPECT_DOUBLE_EQ(evalF32(ExprOp::Tanh, 0.5), std::tanh(0.5));
  EXPECT_DOUBLE_EQ(evalF32(ExprOp::Sigmoid, 0), 0.5);
  EXPECT_DOUBLE_EQ(evalF32(ExprOp::Sqrt, 9), 3);
  EXPECT_DOUBLE_EQ(evalF32(ExprOp::Floor, -1.5), -2);
  EXPECT_DOUBLE_EQ(evalF32(ExprOp::Sin, 0.5), std::sin(0.5));
  EXPECT_DOUBLE_EQ(evalF32(ExprOp::Cos, 0.5), std::cos(0.5));
  EXPECT_DOUBLE_EQ(evalF32(ExprOp::Rsqrt, 4), 0.5);
}

TEST(EvaluateTest, IntegerArithmeticWraps) {
  EXPECT_EQ(evalI32(ExprOp::Add, 3, 4), 7);
  EXPECT_EQ(evalI32(ExprOp::Add, INT_MAX, 1), INT_MIN);
  EXPECT_EQ(evalI32(ExprOp::Mul, 1 << 30, 4), 0);
  EXPECT_EQ(evalI32(ExprOp::Neg, INT_MIN), INT_MIN);
  EXPECT_EQ(evalI32(ExprOp::Abs, -5), 5);
  EXPECT_EQ(evalI32(ExprOp::Min, -5, 2), -5);
  EXPECT_EQ(evalI32(ExprOp::Max, -5, 2), 2);
}

TEST(EvaluateTest, RemainderHasTheSignOfTheDividend) {
  EXPECT_EQ(evalI32(ExprOp::Rem, 7, 3), 1);
  EXPECT_EQ(evalI32(ExprOp::Rem, -7, 3), -1);
  EXPECT_EQ(evalI32(ExprOp::Rem, 7, -3), 1);
  EXPECT_EQ(evalI32(ExprOp::Rem, 7, 0), 0);
  EXPECT_EQ(evalI32(ExprOp::Rem, INT_MIN, -1), 0);
}

TEST(EvaluateTest, FloorDivisionRoundsDown) {
  EXPECT_EQ(evalI32(ExprOp::FloorDiv, 7, 3), 2);
  EXPECT_EQ(evalI32(ExprOp::FloorDiv, -7, 3), -3);
  EXPECT_EQ(evalI32(ExprOp::FloorDiv, 7, -3), -3);
  EXPECT_EQ(evalI32(ExprOp::FloorDiv, -6, 3), -2);
  EXPECT_EQ(evalI32(ExprOp::FloorDiv, 7, 0), 0);
  EXPECT_EQ(evalI32(ExprOp::FloorDiv, INT_MIN, -1), INT_MIN);
}

TEST(EvaluateTest, ComparisonsOfFloats) {
  EXPECT_TRUE(evalCompare(ExprOp::Lt, 1, 2));
  EXPECT_FALSE(evalCompare(ExprOp::Lt, 2, 2));
  EXPECT_TRUE(evalCompare(ExprOp::Le, 2, 2));
  EXPECT_TRUE(evalCompare(ExprOp::Gt, 3, 2));
  EXPECT_TRUE(evalCompare(ExprOp::Ge, 2, 2));
  EXPECT_TRUE(evalCompare(ExprOp::Eq, 2, 2));
  EXPECT_TRUE(evalCompare(ExprOp::Ne, 2, 3));
}

TEST(EvaluateTest, LogicAndSelect) {
  VariantBuilder build;
  const auto less =
      build.op(ExprOp::Lt, ScalarType::Bool, {build.read(Builtin::KvPos), build.read(Builtin::QPos)});
  const auto even =
      build.op(ExprOp::Eq, ScalarType::Bool,
               {build.op(ExprOp::Rem, ScalarType::I32, {build.read(Builtin::KvPos), build.integer(2)}),
                build.integer(0)});
  const auto both = build.op(ExprOp::And, ScalarType::Bool, {less, even});
  const auto either = build.op(ExprOp::Or, ScalarType::Bool, {less, even});
  const auto neither = build.op(ExprOp::Not, ScalarType::Bool, {either});
  const auto chosen = build.op(ExprOp::Select, ScalarType::F32, {both, build.constant(1), build.constant(2)});
  Evaluator evaluate(build.variant, {}, Precision::Exact);
  Site site;
  site.qPos = 5;
  for (int kvPos = 0; kvPos < 8; ++kvPos) {
    site.kvPos = kvPos;
    const bool isLess = kvPos < 5, isEven = kvPos % 2 == 0;
    EXPECT_EQ(evaluate.boolean(both, site), isLess && isEven);
    EXPECT_EQ(evaluate.boolean(either, site), isLess || isEven);
    EXPECT_EQ(evaluate.boolean(neither, site), !(isLess || isEven));
    EXPECT_EQ(evaluate.f32(chosen, site), isLess && isEven ? 1 : 2);
  }
}

// Both are made of one table, by ways of their own: one rounds and refuses, the other rounds and wraps.
TEST(EvaluateTest, EveryOperationIsWhatConstantsFoldTo) {
  const std::vector<double> reals = {-3.5, -1, 0, 0.25, 2, 30}, whole = {-7, -1, 0, 3, 5}, bools = {0, 1};
  int compared = 0;
  const auto compareAll = [&](const spec::Operation &operation, ScalarType type,
                              const std::vector<double> &values) {
    const bool isCompared = operation.typing == spec::Typing::Compares;
    for (const double a : values)
      for (const double b : values) {
        VariantBuilder build;
        const auto id = build.op(operation.op, isCompared ? ScalarType::Bool : type,
                                 {build.constant(a, type), build.constant(b, type)});
        const spec::Folded folded = spec::fold(operation.op, type, {a, b});
        if (!folded.problem.empty())
          continue;
        ++compared;
        const bool isReal = build.variant.exprs[id].type == ScalarType::F32;
        const auto asReal = isReal ? id : build.op(ExprOp::ToF32, ScalarType::F32, {id});
        Evaluator evaluate(build.variant, {}, Precision::Exact);
        EXPECT_EQ(evaluate.f32(asReal, {}), folded.value) << operation.word << " of " << a << ", " << b;
      }
  };
  using enum spec::Typing;
  for (const spec::Operation &operation : spec::operations()) {
    const auto is = [&](std::initializer_list<spec::Typing> some) {
      return std::find(some.begin(), some.end(), operation.typing) != some.end();
    };
    if (is({Reals, Numbers, Compares}))
      compareAll(operation, ScalarType::F32, reals);
    if (is({Integers, Numbers, Compares}))
      compareAll(operation, ScalarType::I32, whole);
    if (is({Bools}))
      compareAll(operation, ScalarType::Bool, bools);
  }
  EXPECT_GT(compared, 900);
}

TEST(EvaluateTest, ReadsEveryName) {
  const Site site{2.5, 10, 4, 3, 1, 7, 9};
  const std::pair<Builtin, double> names[] = {{Builtin::QPos, 10},  {Builtin::KvPos, 4}, {Builtin::Head, 3},
                                              {Builtin::KvHead, 1}, {Builtin::Depth, 7}, {Builtin::Query, 9}};
  for (const auto &[builtin, value] : names) {
    VariantBuilder one;
    const auto id = one.op(ExprOp::ToF32, ScalarType::F32, {one.read(builtin)});
    EXPECT_EQ(Evaluator(one.variant, {}, Precision::Exact).f32(id, site), value);
  }
  VariantBuilder score;
  const auto s = score.read(Builtin::S);
  EXPECT_EQ(Evaluator(score.variant, {}, Precision::Exact).f32(s, site), 2.5);
}

TEST(EvaluateTest, ParametersByHead) {
  VariantBuilder build(4, 2);
  const auto cap = build.readParam(build.param("cap", ScalarType::F32, spec::Param::Shape::Scalar));
  const auto slope = build.readParam(build.param("slope", ScalarType::F32, spec::Param::Shape::PerQueryHead));
  const auto window =
      build.op(ExprOp::ToF32, ScalarType::F32,
               {build.readParam(build.param("window", ScalarType::I32, spec::Param::Shape::PerKvHead))});
  exec::Inputs inputs;
  inputs.params = {{{30}, {}}, {{0, 1, 2, 3}, {}}, {{}, {100, 200}}};
  Evaluator evaluate(build.variant, inputs, Precision::Exact);
  Site site;
  site.head = 3;
  site.kvHead = 1;
  EXPECT_EQ(evaluate.f32(cap, site), 30);
  EXPECT_EQ(evaluate.f32(slope, site), 3);
  EXPECT_EQ(evaluate.f32(window, site), 200);
}

TEST(EvaluateTest, AnIndexOutsideOfATableIsTheNearestElement) {
  const auto at = [](auto place) {
    VariantBuilder build;
    const int table = build.table("bias", ScalarType::F32, 4);
    spec::ExprId index{};
    if constexpr (std::is_same_v<decltype(place), int>)
      index = build.integer(place);
    else
      index = build.constant(place);
    const auto id = build.readTable(table, index);
    exec::Inputs inputs;
    inputs.params = {{{10, 11, 12, 13}, {}}};
    return Evaluator(build.variant, inputs, Precision::Exact).f32(id, {});
  };
  EXPECT_EQ(at(2), 12);
  EXPECT_EQ(at(-1), 10);
  EXPECT_EQ(at(INT_MIN), 10);
  EXPECT_EQ(at(4), 13);
  EXPECT_EQ(at(INT_MAX), 13);
  EXPECT_EQ(at(1.999), 11);
  EXPECT_EQ(at(-0.5), 10);
  EXPECT_EQ(at(1e30), 13);
  EXPECT_EQ(at(-kInfinity), 10);
  EXPECT_EQ(at(std::numeric_limits<double>::quiet_NaN()), 10);
}

TEST(EvaluateTest, ArraysOverTokensAndQueriesAreReadAtTheirSlotsAndIndices) {
  VariantBuilder build;
  build.variant.cache.pageSize = 4;
  const auto doc = build.readParam(build.param("doc", ScalarType::F32, spec::Param::Shape::PerToken));
  const auto own = build.readParam(build.param("own", ScalarType::F32, spec::Param::Shape::PerQuery));
  exec::Inputs inputs;
  inputs.pageTable = {2, -1, 0};
  inputs.params = {{{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {}}, {{20, 21, 22}, {}}};
  Evaluator evaluate(build.variant, inputs, Precision::Exact);
  Site site;
  site.query = 1;
  EXPECT_EQ(evaluate.f32(own, site), 21);
  for (const auto &[location, slot] : {std::pair(0, 8), {3, 11}, {8, 0}, {10, 2}}) {
    site.location = location;
    EXPECT_EQ(evaluate.f32(doc, site), slot);
  }
  site.location = 5; // its page has been freed, as a window hides it
  EXPECT_EQ(evaluate.f32(doc, site), 0);
}

// Rule P6.
TEST(EvaluateTest, KvHeadsOfATokenHaveElementsSideBySide) {
  VariantBuilder build;
  build.variant.kvHeads = 3;
  build.variant.queryHeads = 6;
  build.variant.cache.pageSize = 4;
  const auto scale =
      build.readParam(build.param("scale", ScalarType::F32, spec::Param::Shape::PerTokenAndHead));
  exec::Inputs inputs;
  inputs.pageTable = {1, 0};
  inputs.params.resize(1);
  for (int i = 0; i < 24; ++i)
    inputs.params[0].f32.push_back(static_cast<float>(i));
  Evaluator evaluate(build.variant, inputs, Precision::Exact);
  Site site;
  site.kvHead = 2;
  site.location = 1; // slot 5
  EXPECT_EQ(evaluate.f32(scale, site), 17);
}

TEST(EvaluateTest, PlainRoundsEveryStepToTheDtype) {
  VariantBuilder build;
  const auto sum = build.op(ExprOp::Add, ScalarType::F32, {build.constant(256), build.constant(1)});
  const auto back = build.op(ExprOp::Sub, ScalarType::F32, {sum, build.constant(256)});
  EXPECT_EQ(Evaluator(build.variant, {}, Precision::Exact).f32(back, {}), 1);
  EXPECT_EQ(Evaluator(build.variant, {}, Precision::Plain).f32(back, {}), 0); // bf16 has 8 bits: 257 is 256
  build.variant.tensors = spec::Tensors::alike(4, spec::DType::F16);
  EXPECT_EQ(Evaluator(build.variant, {}, Precision::Plain).f32(back, {}), 1); // f16 has 11
}

} // namespace
} // namespace deft::reference
