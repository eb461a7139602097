#include "tests/support/RandomExpr.h"

#include <limits>

namespace deft::test {

using spec::Builtin;
using spec::ExprId;
using spec::ExprOp;
using spec::ScalarType;

std::vector<ExprOp> functionsOfOne() {
  std::vector<ExprOp> functions;
  for (const spec::Operation &operation : spec::operations())
    if (operation.isFunction && operation.operands == 1)
      functions.push_back(operation.op);
  return functions;
}

ExprId RandomExpr::boolean(int depth) {
  if (depth <= 0)
    return pick(8) == 0 ? builder_.constant(pick(2), ScalarType::Bool) : boolean(1);
  int kind = pick(10);
  if (kind < 5) {
    static constexpr ExprOp kCompare[] = {ExprOp::Lt, ExprOp::Le, ExprOp::Gt,
                                          ExprOp::Ge, ExprOp::Eq, ExprOp::Ne};
    ExprOp op = kCompare[pick(6)];
    bool isReal = pick(3) < realsOfThree;
    ExprId a = isReal ? real(depth - 1) : integer(depth - 1),
           b = isReal ? real(depth - 1) : integer(depth - 1);
    return builder_.op(op, ScalarType::Bool, {a, b});
  }
  ExprId a = boolean(depth - 1);
  if (kind == 5)
    return builder_.op(ExprOp::Not, ScalarType::Bool, {a});
  ExprId b = boolean(depth - 1);
  if (kind == 6)
    return builder_.op(ExprOp::Select, ScalarType::Bool, {a, b, boolean(depth - 1)});
  return builder_.op(kind < 9 ? ExprOp::And : ExprOp::Or, ScalarType::Bool, {a, b});
}

ExprId RandomExpr::param(ScalarType type) {
  using Shape = spec::Param::Shape;
  static constexpr Shape kShapes[] = {Shape::Scalar, Shape::PerKvHead, Shape::PerQueryHead};
  const bool canBeOfRow = on == On::RowAndToken || on == On::Row;
  std::string name = "p" + std::to_string(builder_.variant.params.size());
  return builder_.readParam(builder_.param(name, type, kShapes[pick(canBeOfRow ? 3 : 2)]));
}

/// Where functions differ in their last bit, an index of theirs may be another one.
ExprId RandomExpr::table(ScalarType type, int depth) {
  const ExprId place = withFunctions || pick(2) ? integer(depth) : real(depth);
  const std::string name = "t" + std::to_string(builder_.variant.params.size());
  return builder_.readTable(builder_.table(name, type, 1 + pick(20)), place);
}

ExprId RandomExpr::integer(int depth) {
  if (depth <= 0) {
    using enum Builtin;
    static constexpr Builtin kNames[][8] = {{QPos, KvPos, KvPos, QPos, Head, Depth, KvHead, Query},
                                            {QPos, Head, Query, QPos, Head, QPos, KvHead, Query},
                                            {KvPos, KvPos, Depth, KvPos, KvPos, Depth, KvHead, Depth},
                                            {KvHead, KvHead, KvHead, KvHead, KvHead, KvHead, KvHead, KvHead}};
    int kind = pick(12);
    if (kind < 8)
      return builder_.read(kNames[static_cast<int>(on)][kind]);
    if (kind == 8 && withParams)
      return param(ScalarType::I32);
    if (kind == 9 && withExtremes && pick(4) == 0)
      return builder_.integer(pick(2) ? std::numeric_limits<int>::max() : std::numeric_limits<int>::min());
    return builder_.integer(pick(17) - 6);
  }
  static constexpr ExprOp kBinary[] = {ExprOp::Add, ExprOp::Sub, ExprOp::Mul,      ExprOp::Rem,
                                       ExprOp::Min, ExprOp::Max, ExprOp::FloorDiv, ExprOp::Rem};
  int kind = pick(12);
  if (kind < 8) {
    ExprId a = integer(depth - 1);
    return builder_.op(kBinary[kind], ScalarType::I32, {a, integer(depth - 1)});
  }
  if (kind == 8)
    return builder_.op(pick(2) ? ExprOp::Abs : ExprOp::Neg, ScalarType::I32, {integer(depth - 1)});
  if (kind == 9) {
    ExprId condition = boolean(depth - 1), a = integer(depth - 1);
    return builder_.op(ExprOp::Select, ScalarType::I32, {condition, a, integer(depth - 1)});
  }
  if (kind == 10 && withParams)
    return table(ScalarType::I32, depth - 1);
  return integer(0);
}

ExprId RandomExpr::real(int depth) {
  if (depth <= 0) {
    static constexpr double kExtremes[] = {1e30, -1e30, 1e-40, std::numeric_limits<double>::infinity(),
                                           -std::numeric_limits<double>::infinity()};
    int kind = pick(6);
    if (kind == 0 && withScore_ && on == On::RowAndToken)
      return builder_.read(Builtin::S);
    if (kind == 1 && withParams)
      return param(ScalarType::F32);
    if (kind == 2 && withExtremes && pick(2) == 0)
      return builder_.constant(kExtremes[pick(5)]);
    if (kind < 4)
      return builder_.constant((pick(65) - 24) / 8.0);
    return builder_.op(ExprOp::ToF32, ScalarType::F32, {integer(0)});
  }
  static constexpr ExprOp kBinary[] = {ExprOp::Add, ExprOp::Sub, ExprOp::Mul,
                                       ExprOp::Div, ExprOp::Min, ExprOp::Max};
  static constexpr ExprOp kExact[] = {ExprOp::Neg, ExprOp::Abs, ExprOp::Sqrt};
  static const std::vector<ExprOp> kFunctions = functionsOfOne();
  const auto unary = [&] {
    const int exact = pick(withFunctions ? 10 : 3);
    if (exact < 3)
      return kExact[exact];
    return kFunctions[static_cast<std::size_t>(pick(static_cast<int>(kFunctions.size())))];
  };
  int kind = pick(12);
  if (kind < 6) {
    ExprId a = real(depth - 1);
    return builder_.op(kBinary[kind], ScalarType::F32, {a, real(depth - 1)});
  }
  if (kind < 9)
    return builder_.op(unary(), ScalarType::F32, {real(depth - 1)});
  if (kind == 9) {
    ExprId condition = boolean(depth - 1), a = real(depth - 1);
    return builder_.op(ExprOp::Select, ScalarType::F32, {condition, a, real(depth - 1)});
  }
  if (kind == 10)
    return builder_.op(ExprOp::ToF32, ScalarType::F32, {integer(depth - 1)});
  if (withParams)
    return table(ScalarType::F32, depth - 1);
  return real(0);
}

ExprId RandomExpr::behindConstant(ExprId value, int depth) {
  RandomExpr any(builder_, random_, withScore_);
  any.withFunctions = withFunctions;
  any.withParams = withParams;
  any.withExtremes = withExtremes;
  const ScalarType type = builder_.variant.exprs[value].type;
  const ExprId other = type == ScalarType::Bool  ? any.boolean(depth)
                       : type == ScalarType::F32 ? any.real(depth)
                                                 : any.integer(depth);
  const bool isFirst = pick(2) == 0;
  const ExprId condition = builder_.constant(isFirst ? 1 : 0, ScalarType::Bool);
  return isFirst ? builder_.op(ExprOp::Select, type, {condition, value, other})
                 : builder_.op(ExprOp::Select, type, {condition, other, value});
}

} // namespace deft::test
