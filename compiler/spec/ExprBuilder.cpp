#include "compiler/spec/ExprBuilder.h"

#include <cfloat>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>

namespace deft::spec {
namespace {

std::string numberText(double value) {
  char buffer[40];
  auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  return {buffer, end};
}

/// i32 operands are exact in a double, and so is their sum, difference and (in 64 bits) product.
double foldNumeric(ExprOp op, const std::vector<double> &v) {
  switch (op) {
  case ExprOp::ToF32:
    return v[0];
  case ExprOp::Neg:
    return -v[0];
  case ExprOp::Add:
    return v[0] + v[1];
  case ExprOp::Sub:
    return v[0] - v[1];
  case ExprOp::Mul:
    return v[0] * v[1];
  case ExprOp::Div:
    return v[0] / v[1];
  case ExprOp::Rem:
    return v[1] == 0 ? 0 : std::fmod(v[0], v[1]);
  case ExprOp::Min:
    return std::fmin(v[0], v[1]);
  case ExprOp::Max:
    return std::fmax(v[0], v[1]);
  case ExprOp::Abs:
    return std::fabs(v[0]);
  case ExprOp::Exp:
    return std::exp(v[0]);
  case ExprOp::Exp2:
    return std::exp2(v[0]);
  case ExprOp::Log:
    return std::log(v[0]);
  case ExprOp::Log2:
    return std::log2(v[0]);
  case ExprOp::Tanh:
    return std::tanh(v[0]);
  case ExprOp::Sigmoid:
    return 1 / (1 + std::exp(-v[0]));
  case ExprOp::Sqrt:
    return std::sqrt(v[0]);
  case ExprOp::Rsqrt:
    return 1 / std::sqrt(v[0]);
  case ExprOp::Floor:
    return std::floor(v[0]);
  case ExprOp::Sin:
    return std::sin(v[0]);
  case ExprOp::Cos:
    return std::cos(v[0]);
  case ExprOp::FloorDiv: // the nearest double of a quotient of two i32 is on the same side of each integer
    return v[1] == 0 ? 0 : std::floor(v[0] / v[1]);
  default: // no operation on numbers; the constant is refused
    return std::numeric_limits<double>::quiet_NaN();
  }
}

std::optional<bool> foldBool(ExprOp op, const std::vector<double> &v) {
  switch (op) {
  case ExprOp::Not:
    return v[0] == 0;
  case ExprOp::And:
    return v[0] != 0 && v[1] != 0;
  case ExprOp::Or:
    return v[0] != 0 || v[1] != 0;
  case ExprOp::Lt:
    return v[0] < v[1];
  case ExprOp::Le:
    return v[0] <= v[1];
  case ExprOp::Gt:
    return v[0] > v[1];
  case ExprOp::Ge:
    return v[0] >= v[1];
  case ExprOp::Eq:
    return v[0] == v[1];
  case ExprOp::Ne:
    return v[0] != v[1];
  default:
    return std::nullopt;
  }
}

} // namespace

Folded fold(ExprOp op, ScalarType operandType, const std::vector<double> &operands) {
  if (op == ExprOp::Select)
    return {operands[0] != 0 ? operands[1] : operands[2], {}};
  if (std::optional<bool> truth = foldBool(op, operands))
    return {*truth ? 1.0 : 0.0, {}};
  double value = foldNumeric(op, operands) + 0.0; // -0 becomes 0: one constant a value
  if (operandType == ScalarType::I32 && op != ExprOp::ToF32) {
    if (value < INT32_MIN || value > INT32_MAX)
      return {0, numberText(value) + " does not fit in i32"};
    return {value, {}};
  }
  bool hasInfinity = false;
  for (double operand : operands)
    hasInfinity |= std::isinf(operand);
  if (std::isnan(value))
    return {0, "the value of this constant is not a number"};
  if (std::isinf(value) && !hasInfinity)
    return {0, "the value of this constant is infinite"};
  if (std::isfinite(value) && std::fabs(value) > FLT_MAX)
    return {0, numberText(value) + " does not fit in f32"};
  return {value, {}};
}

ExprId ExprBuilder::add(Expr expr) {
  Key key{expr.op, expr.type, expr.operands, expr.value, std::signbit(expr.value), expr.builtin, expr.param};
  auto [known, isNew] = known_.try_emplace(std::move(key), static_cast<ExprId>(exprs_.size()));
  if (isNew)
    exprs_.push_back(std::move(expr));
  return known->second;
}

ExprId ExprBuilder::constant(ScalarType type, double value, support::SourceRange range) {
  Expr expr;
  expr.type = type;
  expr.value = value;
  expr.range = range;
  return add(std::move(expr));
}

ExprId ExprBuilder::builtin(Builtin builtin, support::SourceRange range) {
  Expr expr;
  expr.op = ExprOp::Builtin;
  expr.type = typeOf(builtin);
  expr.builtin = builtin;
  expr.range = range;
  return add(std::move(expr));
}

ExprId ExprBuilder::param(int index, const Param &param, support::SourceRange range) {
  Expr expr;
  expr.op = param.shape == Param::Shape::Scalar ? ExprOp::Param : ExprOp::ParamElement;
  expr.type = param.type;
  expr.param = index;
  expr.range = range;
  return add(std::move(expr));
}

ExprId ExprBuilder::tableElement(int index, const Param &param, ExprId place, support::SourceRange range) {
  Expr expr;
  expr.op = ExprOp::TableElement;
  expr.type = param.type;
  expr.operands = {place};
  expr.param = index;
  expr.range = range;
  return add(std::move(expr));
}

/// What needs one operand only: `true && x`, `c ? x : x`.
std::optional<ExprId> ExprBuilder::simplify(ExprOp op, const std::vector<ExprId> &operands) const {
  auto constant = [&](int i) { return isConstant(operands[i]); };
  auto truth = [&](int i) { return exprs_[operands[i]].value != 0; };
  if (op == ExprOp::And || op == ExprOp::Or) {
    for (int i : {0, 1})
      if (constant(i))
        return truth(i) == (op == ExprOp::And) ? operands[1 - i] : operands[i];
    if (operands[0] == operands[1])
      return operands[0];
  }
  if (op == ExprOp::Select) {
    if (constant(0))
      return truth(0) ? operands[1] : operands[2];
    if (operands[1] == operands[2])
      return operands[1];
  }
  return std::nullopt;
}

ExprId ExprBuilder::apply(ExprOp op, ScalarType type, std::vector<ExprId> operands,
                          support::SourceRange range, std::string &problem) {
  bool allConstant = true;
  std::vector<double> values;
  for (ExprId operand : operands) {
    allConstant &= isConstant(operand);
    values.push_back(exprs_[operand].value);
  }
  if (allConstant) {
    Folded folded = fold(op, exprs_[operands[0]].type, values);
    if (folded.problem.empty())
      return constant(type, folded.value, range);
    problem = folded.problem;
  } else if (std::optional<ExprId> simple = simplify(op, operands)) {
    return *simple;
  }
  Expr expr;
  expr.op = op;
  expr.type = type;
  expr.operands = std::move(operands);
  expr.range = range;
  return add(std::move(expr));
}

std::optional<Builtin> nameRead(const Expr &expr, const std::vector<Param> &params) {
  if (expr.op == ExprOp::Builtin)
    return expr.builtin;
  if (expr.op != ExprOp::ParamElement)
    return std::nullopt;
  switch (params[static_cast<std::size_t>(expr.param)].shape) {
  case Param::Shape::PerQueryHead:
    return Builtin::Head;
  case Param::Shape::PerKvHead:
    return Builtin::KvHead;
  case Param::Shape::PerToken:
  case Param::Shape::PerTokenAndHead:
    return Builtin::Depth;
  case Param::Shape::PerQuery:
    return Builtin::Query;
  case Param::Shape::Scalar:
  case Param::Shape::Table:
    break; // no element of these is a ParamElement
  }
  return std::nullopt;
}

std::vector<Expr> compactExprs(const std::vector<Expr> &exprs, const std::vector<ExprId *> &roots) {
  std::vector<bool> wanted(exprs.size(), false);
  for (ExprId *root : roots)
    wanted[*root] = true;
  for (std::size_t id = exprs.size(); id-- > 0;)
    if (wanted[id])
      for (ExprId operand : exprs[id].operands)
        wanted[operand] = true;
  std::vector<Expr> kept;
  std::vector<ExprId> renamed(exprs.size(), 0);
  for (std::size_t id = 0; id < exprs.size(); ++id) {
    if (!wanted[id])
      continue;
    renamed[id] = static_cast<ExprId>(kept.size());
    kept.push_back(exprs[id]);
    for (ExprId &operand : kept.back().operands)
      operand = renamed[operand];
  }
  for (ExprId *root : roots)
    *root = renamed[*root];
  return kept;
}

} // namespace deft::spec
