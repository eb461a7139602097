#include "runtime/reference/Evaluate.h"

#include "runtime/exec/Half.h"

#include <algorithm>
#include <cmath>

namespace deft::reference {

using spec::Builtin;
using spec::Expr;
using spec::ExprId;
using spec::ExprOp;
using spec::ScalarType;

namespace {

std::int32_t wrap(std::int64_t value) { return static_cast<std::int32_t>(static_cast<std::uint64_t>(value)); }

std::int32_t builtinI32(Builtin builtin, const Site &site) {
  switch (builtin) {
  case Builtin::QPos:
    return site.qPos;
  case Builtin::KvPos:
    return site.kvPos;
  case Builtin::Head:
    return site.head;
  case Builtin::KvHead:
    return site.kvHead;
  case Builtin::Depth:
    return site.depth;
  case Builtin::Query:
    return site.query;
  case Builtin::Dim:
    return site.dim;
  case Builtin::S: // f32, as are the next four
  case Builtin::X:
  case Builtin::XHalf:
  case Builtin::XPair:
  case Builtin::XRms:
  case Builtin::Pos: // no Variant's
    break;
  }
  return 0;
}

double builtinF32(Builtin builtin, const Site &site) {
  switch (builtin) {
  case Builtin::X:
    return site.x;
  case Builtin::XHalf:
    return site.xHalf;
  case Builtin::XPair:
    return site.xPair;
  case Builtin::XRms:
    return site.xRms;
  default:
    return site.s;
  }
}

} // namespace

Evaluator::Evaluator(const spec::Variant &variant, const exec::Inputs &inputs, Precision precision)
    : variant_(variant), inputs_(inputs), precision_(precision), needed_(variant.exprs.size()),
      values_(variant.exprs.size()) {}

double Evaluator::round(double value) const {
  switch (precision_) {
  case Precision::Plain:
    return exec::roundTo(value, variant_.tensors.q.dtype);
  case Precision::Single:
    return static_cast<float>(value);
  case Precision::Exact:
    break;
  }
  return value;
}

Evaluator::Ids Evaluator::operandsOf(ExprId id) const {
  std::vector<bool> isNeeded(id + 1, false);
  isNeeded[id] = true;
  Ids ids;
  for (ExprId i = id + 1; i-- > 0;) { // operands come before their users
    if (!isNeeded[i])
      continue;
    ids.push_back(i);
    for (ExprId operand : variant_.exprs[i].operands)
      isNeeded[operand] = true;
  }
  std::reverse(ids.begin(), ids.end());
  return ids;
}

Evaluator::Value Evaluator::compute(ExprId id, const Site &site) {
  if (needed_[id].empty())
    needed_[id] = operandsOf(id);
  for (ExprId i : needed_[id])
    values_[i] = apply(variant_.exprs[i], site);
  return values_[id];
}

int Evaluator::placeInTable(ExprId index, int size) const {
  if (variant_.exprs[index].type == ScalarType::I32)
    return std::clamp(values_[index].i32, 0, size - 1);
  return static_cast<int>(std::fmin(std::fmax(std::floor(values_[index].f32), 0), size - 1));
}

std::size_t Evaluator::placeOf(const Expr &expr, const Site &site) const {
  const spec::Param &param = variant_.params[expr.param];
  switch (param.shape) {
  case spec::Param::Shape::PerQueryHead:
    return static_cast<std::size_t>(site.head);
  case spec::Param::Shape::PerKvHead:
    return static_cast<std::size_t>(site.kvHead);
  case spec::Param::Shape::Table:
    return static_cast<std::size_t>(placeInTable(expr.operands[0], param.size));
  case spec::Param::Shape::PerToken:
  case spec::Param::Shape::PerTokenAndHead: {
    const auto slot = static_cast<std::size_t>(
        exec::cacheSlotOf(inputs_.pageTable.data(), variant_.cache.pageSize, site.location));
    const auto each = static_cast<std::size_t>(variant_.elementsOf(param));
    return each == 1 ? slot : slot * each + static_cast<std::size_t>(site.kvHead);
  }
  case spec::Param::Shape::PerQuery:
    return static_cast<std::size_t>(site.query);
  case spec::Param::Shape::Scalar:
    break;
  }
  return 0;
}

Evaluator::Value Evaluator::readParam(const Expr &expr, const Site &site) const {
  const spec::Param &param = variant_.params[expr.param];
  const exec::ParamValue &value = inputs_.params[expr.param];
  const int pageSize = variant_.cache.pageSize;
  if (param.isOfTokens() && !inputs_.hasPage(site.location, pageSize))
    return {}; // of a token that the mask hides whatever this is: its page has been freed
  const std::size_t index = placeOf(expr, site);
  return param.type == ScalarType::F32 ? Value{round(value.f32[index]), 0} : Value{0, value.i32[index]};
}

Evaluator::Value Evaluator::apply(const Expr &expr, const Site &site) const {
  const auto operand = [&](std::size_t i) {
    return i < expr.operands.size() ? values_[expr.operands[i]] : Value{};
  };
  const Value a = operand(0), b = operand(1);
  switch (expr.op) {
  case ExprOp::Constant:
    return expr.type == ScalarType::F32 ? Value{round(expr.value), 0}
                                        : Value{0, static_cast<std::int32_t>(expr.value)};
  case ExprOp::Builtin:
    return expr.type == ScalarType::F32 ? Value{builtinF32(expr.builtin, site), 0}
                                        : Value{0, builtinI32(expr.builtin, site)};
  case ExprOp::Param:
  case ExprOp::ParamElement:
  case ExprOp::TableElement:
    return readParam(expr, site);
  case ExprOp::ToF32:
    return {round(a.i32), 0};
  case ExprOp::Select:
    return a.i32 ? b : operand(2);
  default:
    break;
  }
  const spec::Operation &operation = spec::operationOf(expr.op);
  if (variant_.exprs[expr.operands[0]].type != ScalarType::F32)
    return {0, wrap(operation.ofIntegers(a.i32, b.i32))};
  const double value = operation.ofReals(a.f32, b.f32);
  return expr.type == ScalarType::F32 ? Value{round(value), 0} : Value{0, static_cast<std::int32_t>(value)};
}

} // namespace deft::reference
