#include "compiler/spec/ExprBuilder.h"

#include "compiler/spec/Ast.h"

#include <cfloat>
#include <cmath>
#include <cstdint>

namespace deft::spec {
namespace {

/// i32 that has not wrapped yet.
Folded foldInteger(const Operation &operation, std::int64_t a, std::int64_t b) {
  const auto value = static_cast<double>(operation.ofIntegers(a, b));
  if (value < INT32_MIN || value > INT32_MAX)
    return {0, numberText(value) + " does not fit in i32"};
  return {value, {}};
}

Folded foldReal(const Operation &operation, double a, double b) {
  const double value = operation.ofReals(a, b) + 0.0; // -0 becomes 0: one constant a value
  const bool hasInfinity = std::isinf(a) || std::isinf(b);
  if (std::isnan(value))
    return {0, "the value of this constant is not a number"};
  if (std::isinf(value) && !hasInfinity)
    return {0, "the value of this constant is infinite"};
  if (std::isfinite(value) && std::fabs(value) > FLT_MAX)
    return {0, numberText(value) + " does not fit in f32"};
  return {value, {}};
}

} // namespace

Folded fold(ExprOp op, ScalarType operandType, const std::vector<double> &operands) {
  const double a = operands[0], b = operands.size() > 1 ? operands[1] : 0;
  if (op == ExprOp::Select)
    return {a != 0 ? b : operands[2], {}};
  if (op == ExprOp::ToF32)
    return {a, {}};
  const Operation &operation = operationOf(op);
  if (operandType == ScalarType::F32)
    return foldReal(operation, a, b);
  return foldInteger(operation, static_cast<std::int64_t>(a), static_cast<std::int64_t>(b));
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
