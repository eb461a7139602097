#include "tests/unit/compiler/transforms/ExprF32.h"

#include "compiler/spec/Names.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

namespace deft::test {

using spec::ExprOp;

namespace {

struct Value {
  float f = 0;
  int32_t i = 0;
};

int32_t builtin(spec::Builtin name, const reference::Site &site) {
  switch (name) {
  case spec::Builtin::QPos:
    return site.qPos;
  case spec::Builtin::KvPos:
    return site.kvPos;
  case spec::Builtin::Head:
    return site.head;
  case spec::Builtin::KvHead:
    return site.kvHead;
  case spec::Builtin::Depth:
    return site.depth;
  default:
    return site.query;
  }
}

template <typename T> bool compare(ExprOp op, T a, T b) {
  switch (op) {
  case ExprOp::Lt:
    return a < b;
  case ExprOp::Le:
    return a <= b;
  case ExprOp::Gt:
    return a > b;
  case ExprOp::Ge:
    return a >= b;
  case ExprOp::Eq:
    return a == b;
  default:
    return a != b;
  }
}

Value integer(ExprOp op, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (op) {
  case ExprOp::Neg:
    result = -a;
    break;
  case ExprOp::Abs:
    result = std::abs(a);
    break;
  case ExprOp::Add:
    result = a + b;
    break;
  case ExprOp::Sub:
    result = a - b;
    break;
  case ExprOp::Mul:
    result = a * b;
    break;
  case ExprOp::Rem:
    result = b == 0 ? 0 : a % b;
    break;
  case ExprOp::FloorDiv:
    result = b == 0 ? 0 : static_cast<int64_t>(std::floor(static_cast<double>(a) / static_cast<double>(b)));
    break;
  case ExprOp::Min:
    result = std::min(a, b);
    break;
  default:
    result = std::max(a, b);
    break;
  }
  return {0, static_cast<int32_t>(static_cast<uint64_t>(result))};
}

float real(ExprOp op, float a, float b) {
  switch (op) {
  case ExprOp::Neg:
    return -a;
  case ExprOp::Abs:
    return std::fabs(a);
  case ExprOp::Add:
    return a + b;
  case ExprOp::Sub:
    return a - b;
  case ExprOp::Mul:
    return a * b;
  case ExprOp::Div:
    return a / b;
  case ExprOp::Min:
    return std::fmin(a, b);
  case ExprOp::Max:
    return std::fmax(a, b);
  case ExprOp::Sigmoid:
    return 1 / (1 + std::exp(-a));
#define DEFT_F32(ID, NUMBER, WORD, NATURAL, MEANING, ...)                                                    \
  case ExprOp::ID:                                                                                           \
    return MEANING;
    DEFT_MATH_FUNCTIONS(DEFT_F32)
#undef DEFT_F32
  default:
    throw std::logic_error(std::string("the tests have no f32 of ") + spec::toString(op));
  }
}

} // namespace

bool evaluateBool(const spec::Variant &variant, const exec::Inputs &inputs, spec::ExprId root,
                  const reference::Site &site) {
  std::vector<Value> values(root + 1);
  for (spec::ExprId id = 0; id <= root; ++id) {
    const spec::Expr &expr = variant.exprs[id];
    auto in = [&](size_t operand) {
      return operand < expr.operands.size() ? values[expr.operands[operand]] : Value();
    };
    bool isReal = expr.type == spec::ScalarType::F32;
    Value &out = values[id];
    switch (expr.op) {
    case ExprOp::Constant:
      out = isReal ? Value{static_cast<float>(expr.value), 0} : Value{0, static_cast<int32_t>(expr.value)};
      break;
    case ExprOp::Builtin:
      out = {0, builtin(expr.builtin, site)};
      break;
    case ExprOp::Param:
    case ExprOp::ParamElement: {
      auto shape = variant.params[expr.param].shape;
      size_t index = shape == spec::Param::Shape::Scalar      ? 0
                     : shape == spec::Param::Shape::PerKvHead ? site.kvHead
                                                              : site.head;
      const exec::ParamValue &param = inputs.params[expr.param];
      out = isReal ? Value{param.f32[index], 0} : Value{0, param.i32[index]};
      break;
    }
    case ExprOp::TableElement: {
      const exec::ParamValue &table = inputs.params[expr.param];
      const int last = variant.params[expr.param].size - 1;
      const bool isRealPlace = variant.exprs[expr.operands[0]].type == spec::ScalarType::F32;
      const float place = std::fmin(std::fmax(std::floor(in(0).f), 0.f), static_cast<float>(last));
      const auto index =
          static_cast<size_t>(isRealPlace ? static_cast<int>(place) : std::clamp(in(0).i, 0, last));
      out = isReal ? Value{table.f32[index], 0} : Value{0, table.i32[index]};
      break;
    }
    case ExprOp::Not:
      out.i = !in(0).i;
      break;
    case ExprOp::ToF32:
      out.f = static_cast<float>(in(0).i);
      break;
    case ExprOp::And:
      out.i = in(0).i && in(1).i;
      break;
    case ExprOp::Or:
      out.i = in(0).i || in(1).i;
      break;
    case ExprOp::Select:
      out = in(0).i ? in(1) : in(2);
      break;
    case ExprOp::Lt:
    case ExprOp::Le:
    case ExprOp::Gt:
    case ExprOp::Ge:
    case ExprOp::Eq:
    case ExprOp::Ne:
      out.i = variant.exprs[expr.operands[0]].type == spec::ScalarType::F32
                  ? compare(expr.op, in(0).f, in(1).f)
                  : compare(expr.op, in(0).i, in(1).i);
      break;
    default:
      if (isReal)
        out.f = real(expr.op, in(0).f, in(1).f);
      else
        out = integer(expr.op, in(0).i, in(1).i);
    }
  }
  return values[root].i != 0;
}

} // namespace deft::test
