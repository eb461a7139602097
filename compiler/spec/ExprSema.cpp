#include "compiler/spec/ExprSema.h"

#include "compiler/spec/Limits.h"
#include "compiler/spec/Names.h"
#include "compiler/support/NearestName.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <limits>

namespace deft::spec {

using support::SourceRange;

/// Bounds the work for one attention: recursion, expression nodes visited, operations made.
bool ExprSema::spend(SourceRange range) {
  if (exhausted_)
    return false;
  const char *what = nullptr;
  std::size_t limit = 0;
  if (depth_ > kMaxCallDepth) {
    what = "expressions with their `let`s and functions are nested deeper than the limit of ";
    limit = kMaxCallDepth;
  } else if (builder_.size() > kMaxOperations) {
    what = "the attention has more operations than the limit of ";
    limit = kMaxOperations;
  } else if (++steps_ > kMaxSteps) {
    what = "the expressions of the attention take more steps to expand than the limit of ";
    limit = kMaxSteps;
  }
  if (!what)
    return true;
  exhausted_ = true; // one report; what follows would be noise
  reporter_.error(range, what + std::to_string(limit));
  return false;
}

std::optional<ExprId> ExprSema::evaluate(AstExprId id, const Scope &scope, Place place) {
  const AstExpr &expr = ast(id);
  struct Depth {
    int &depth;
    explicit Depth(int &d) : depth(d) { ++depth; }
    ~Depth() { --depth; }
  } depth(depth_);
  if (!spend(expr.range))
    return std::nullopt;
  switch (expr.kind) {
  case AstExprKind::Integer:
  case AstExprKind::Float:
    return evaluateLiteral(expr, /*negated=*/false);
  case AstExprKind::Name:
    return evaluateName(expr, scope);
  case AstExprKind::Unary:
    return evaluateUnary(expr, scope);
  case AstExprKind::Binary:
    return evaluateBinary(expr, scope);
  case AstExprKind::Conditional:
    return evaluateConditional(expr, scope);
  case AstExprKind::Index:
    return evaluateIndex(expr, scope);
  case AstExprKind::Call:
    return evaluateCall(expr, scope, place);
  }
  return std::nullopt;
}

std::optional<ExprId> ExprSema::apply(ExprOp op, ScalarType type, std::vector<ExprId> operands,
                                      SourceRange range) {
  std::string problem;
  ExprId value = builder_.apply(op, type, std::move(operands), range, problem);
  if (problem.empty())
    return value;
  reporter_.error(range, problem);
  return std::nullopt;
}

ExprId ExprSema::toF32(ExprId value) {
  if (builder_[value].type != ScalarType::I32)
    return value;
  std::string problem; // an i32 always fits
  return builder_.apply(ExprOp::ToF32, ScalarType::F32, {value}, builder_[value].range, problem);
}

void ExprSema::promote(std::vector<ExprId> &operands) {
  bool anyFloat = false;
  for (ExprId operand : operands)
    anyFloat |= builder_[operand].type == ScalarType::F32;
  if (anyFloat)
    for (ExprId &operand : operands)
      operand = toF32(operand);
}

bool ExprSema::requireNumber(AstExprId expr, ExprId value, const std::string &op) {
  if (builder_[value].type != ScalarType::Bool)
    return true;
  support::Diagnostic &report = reporter_.error(ast(expr).range, "`" + op + "` takes numbers, this is bool");
  const AstExpr &operand = ast(expr);
  bool isComparison =
      operand.kind == AstExprKind::Binary && operationOf(operand.op).typing == Typing::Compares;
  if (isComparison && (op == "<" || op == "<=" || op == ">" || op == ">=" || op == "==" || op == "!="))
    report.withHint("comparisons do not chain; write `a < b && b < c`");
  else
    report.withHint("choose numbers with `condition ? a : b`");
  return false;
}

bool ExprSema::requireBool(AstExprId expr, ExprId value, const std::string &op) {
  if (builder_[value].type == ScalarType::Bool)
    return true;
  reporter_
      .error(ast(expr).range,
             "`" + op + "` takes bool, this is " + std::string(toString(builder_[value].type)))
      .withHint("compare it, for example with `!= 0`");
  return false;
}

std::optional<ExprId> ExprSema::evaluateLiteral(const AstExpr &expr, bool negated) {
  if (expr.kind == AstExprKind::Integer) {
    double limit = std::numeric_limits<std::int32_t>::max() + (negated ? 1.0 : 0.0);
    if (expr.number > limit) {
      reporter_.error(expr.range, "the number does not fit in i32").withHint("with a `.0` it is an f32");
      return std::nullopt;
    }
    return builder_.constant(ScalarType::I32,
                             expr.number == 0 ? 0
                             : negated        ? -expr.number
                                              : expr.number,
                             expr.range);
  }
  // From here on the nearest f32 is infinity. Below, it may be the largest one, whose usual text
  // is 3.4028235e38, a little more than that.
  constexpr double kLeastInfinite = 0x1.ffffffp127;
  if (expr.number >= kLeastInfinite) {
    reporter_.error(expr.range, "the number does not fit in f32").withHint("`inf` is infinity");
    return std::nullopt;
  }
  return builder_.constant(ScalarType::F32, std::min<double>(expr.number, FLT_MAX), expr.range);
}

std::optional<ExprId> ExprSema::evaluateUnary(const AstExpr &expr, const Scope &scope) {
  AstExprId inner = expr.operands[0];
  if (expr.op == ExprOp::Neg && ast(inner).kind == AstExprKind::Integer)
    return evaluateLiteral(ast(inner), /*negated=*/true);
  std::optional<ExprId> value = evaluate(inner, scope, expr.op == ExprOp::Not ? Place::Mask : Place::Operand);
  if (!value)
    return std::nullopt;
  bool typed = expr.op == ExprOp::Not ? requireBool(inner, *value, "!") : requireNumber(inner, *value, "-");
  if (!typed)
    return std::nullopt;
  return apply(expr.op, builder_[*value].type, {*value}, expr.range);
}

std::optional<ExprId> ExprSema::evaluateBinary(const AstExpr &expr, const Scope &scope) {
  const Typing typing = operationOf(expr.op).typing;
  const bool isLogic = typing == Typing::Bools;
  std::vector<ExprId> values;
  bool ok = true;
  // Both sides are checked even when the first is wrong, so that one run reports both.
  for (AstExprId operand : expr.operands) {
    std::optional<ExprId> value = evaluate(operand, scope, isLogic ? Place::Mask : Place::Operand);
    ok &= value && (isLogic ? requireBool(operand, *value, expr.name.text)
                            : requireNumber(operand, *value, expr.name.text));
    values.push_back(value.value_or(0));
  }
  if (!ok)
    return std::nullopt;
  if (isLogic)
    return apply(expr.op, ScalarType::Bool, std::move(values), expr.range);
  if (typing == Typing::Integers) {
    for (std::size_t i = 0; i < values.size(); ++i)
      if (builder_[values[i]].type != ScalarType::I32) {
        reporter_.error(ast(expr.operands[i]).range, "`" + expr.name.text + "` takes i32, this is f32");
        return std::nullopt;
      }
    return apply(expr.op, ScalarType::I32, std::move(values), expr.range);
  }
  if (typing == Typing::Reals)
    for (ExprId &value : values)
      value = toF32(value);
  promote(values);
  const ScalarType type = typing == Typing::Compares ? ScalarType::Bool : builder_[values[0]].type;
  return apply(expr.op, type, values, expr.range);
}

std::optional<ExprId> ExprSema::evaluateConditional(const AstExpr &expr, const Scope &scope) {
  std::vector<ExprId> values;
  bool ok = true;
  for (std::size_t i = 0; i < 3; ++i) {
    std::optional<ExprId> value = evaluate(expr.operands[i], scope, i == 0 ? Place::Mask : Place::Operand);
    ok &= value.has_value() && (i > 0 || requireBool(expr.operands[0], *value, "?:"));
    values.push_back(value.value_or(0));
  }
  if (!ok)
    return std::nullopt;
  std::vector<ExprId> branches(values.begin() + 1, values.end());
  ScalarType yes = builder_[branches[0]].type, no = builder_[branches[1]].type;
  if ((yes == ScalarType::Bool) != (no == ScalarType::Bool)) {
    reporter_.error(ast(expr.operands[2]).range,
                    "the branches of `?:` are " + std::string(toString(yes)) + " and " + toString(no));
    return std::nullopt;
  }
  promote(branches);
  return apply(ExprOp::Select, builder_[branches[0]].type, {values[0], branches[0], branches[1]}, expr.range);
}

std::optional<ExprId> ExprSema::evaluateIndex(const AstExpr &expr, const Scope &scope) {
  std::optional<int> array = arrayParamNamed(expr, scope);
  if (!array) {
    Found found = lookUp(expr.name.text, scope);
    bool known = found.declaration || parseBuiltin(expr.name.text) ||
                 (scope.arguments && scope.arguments->count(expr.name.text));
    if (known)
      reporter_.error(expr.name.range, "`" + expr.name.text + "` is not an array");
    else
      unknownName(expr, scope);
    return std::nullopt;
  }
  const Param &param = params_[*array];
  if (param.shape == Param::Shape::Table) {
    if (expr.operands.size() != 1) {
      reporter_.error(expr.range, "`" + expr.name.text + "` is a table, which takes one index");
      return std::nullopt;
    }
    const int slot = *array;
    std::optional<ExprId> place = evaluate(expr.operands[0], scope);
    if (!place || !requireNumber(expr.operands[0], *place, expr.name.text + "[]"))
      return std::nullopt;
    return builder_.tableElement(slot, params_[slot], *place, expr.range);
  }
  std::string written;
  const AstExpr *hidden = nullptr; // `token` is a word here alone, and may have been declared
  for (const AstExprId operand : expr.operands) {
    const AstExpr &index = ast(operand);
    const std::string name = index.kind == AstExprKind::Name ? index.name.text : "?";
    written += (written.empty() ? "" : ", ") + name;
    if ((scope.arguments && scope.arguments->count(name)) || lookUp(name, scope).declaration != nullptr)
      hidden = &index;
  }
  const char *wanted = indexName(param.shape);
  if (written != wanted || hidden) {
    SourceRange indices = ast(expr.operands.front()).range;
    indices.end = ast(expr.operands.back()).range.end;
    support::Diagnostic &report =
        reporter_.error(indices, "`" + expr.name.text + "` has one element for each of `" +
                                     toString(param.shape) + "` and is indexed by `" + wanted + "` only");
    if (hidden && written == wanted)
      report.withHint("this `" + hidden->name.text + "` is declared, and hides that one");
    return std::nullopt;
  }
  return builder_.param(*array, param, expr.range);
}

std::optional<ExprId> ExprSema::evaluateAs(AstExprId id, const Scope &scope, ScalarType type,
                                           const std::string &what, Place place) {
  std::optional<ExprId> value = evaluate(id, scope, place);
  if (!value)
    return std::nullopt;
  ScalarType got = builder_[*value].type;
  if (type == ScalarType::F32)
    value = toF32(*value);
  if (builder_[*value].type == type)
    return value;
  reporter_.error(ast(id).range, what + " must be " + toString(type) + ", this is " + toString(got));
  return std::nullopt;
}

/// The narrowest part of an expression that makes `predicate` hold for its value: the name or call to point
/// at.
template <typename Predicate>
std::optional<SourceRange> ExprSema::findPart(AstExprId id, const Scope &scope, const Predicate &predicate) {
  const AstExpr &expr = ast(id);
  if (expr.kind != AstExprKind::Index)
    for (AstExprId operand : expr.operands)
      if (auto part = findPart(operand, scope, predicate))
        return part;
  if (expr.kind != AstExprKind::Name && expr.kind != AstExprKind::Call && expr.kind != AstExprKind::Index)
    return std::nullopt;
  if (expr.kind == AstExprKind::Name && arrayParamNamed(expr, scope))
    return std::nullopt; // not a value by itself; the call that it is passed to is
  std::optional<ExprId> value = evaluate(id, scope);
  return value && predicate(*value) ? std::optional(expr.range) : std::nullopt;
}

std::optional<double> ExprSema::evaluateConstant(AstExprId id, const Scope &scope, ScalarType type,
                                                 const std::string &what) {
  std::optional<ExprId> value = evaluateAs(id, scope, type, what);
  if (!value)
    return std::nullopt;
  if (builder_.isConstant(*value))
    return builder_[*value].value;
  auto part = findPart(id, scope, [&](ExprId v) { return !builder_.isConstant(v); });
  reporter_.error(part.value_or(ast(id).range),
                  what + " must be a constant, and this is known only at run time");
  return std::nullopt;
}

bool ExprSema::checkReads(ExprId value, AstExprId expr, const Scope &scope, const MayRead &mayRead,
                          const std::string &problem, const std::string &hint) {
  auto readsOther = [&](ExprId v) {
    return reaches(exprs_, v, [&](const Expr &e) {
      const std::optional<Builtin> name = nameRead(e, params_);
      return name && !mayRead(*name);
    });
  };
  if (!readsOther(value))
    return true;
  auto part = findPart(expr, scope, readsOther);
  reporter_.error(part.value_or(ast(expr).range), problem).withHint(hint);
  return false;
}

bool ExprSema::checkReadsNoScore(ExprId value, AstExprId expr, const Scope &scope, const std::string &what,
                                 const std::string &hint) {
  const auto isNotScore = [](Builtin builtin) { return builtin != Builtin::S; };
  return checkReads(value, expr, scope, isNotScore, what + " may not read `s`", hint) &&
         checkReadsNoElement(value, expr, scope, what);
}

bool ExprSema::checkReadsNoElement(ExprId value, AstExprId expr, const Scope &scope,
                                   const std::string &what) {
  return checkReads(value, expr, scope, mayReadOfPair, what + " may not read elements",
                    "`x`, `dim` and the other names of an element belong into `query`, `key` or `output`");
}

bool ExprSema::checkReadsHeadOnly(ExprId value, AstExprId expr, const Scope &scope, const std::string &what) {
  return checkReads(value, expr, scope, mayReadInSink,
                    what + " may read `head`, `kv_head` and parameters only",
                    "it is the same for all queries and tokens of a head");
}

std::optional<std::optional<ExprId>> ExprSema::factorOfElement(ExprId value, AstExprId expr) {
  const auto isElement = [](const Expr &e) { return e.op == ExprOp::Builtin && e.builtin == Builtin::X; };
  const auto readsElement = [&](ExprId id) { return reaches(exprs_, id, isElement); };
  struct Step {
    ExprId made;                 ///< what it makes of the one below
    std::optional<ExprId> other; ///< its second operand
  };
  const auto isNone = [&] {
    reporter_.error(ast(expr).range, "`value` must be `x` times an expression that does not read it")
        .withHint("all elements of a token's V have one factor; put functions of elements into `output`");
    return std::nullopt;
  };
  std::vector<Step> steps; // from the product down to `x`
  for (ExprId at = value; !isElement(exprs_[at]);) {
    const Expr &part = exprs_[at];
    const bool isDivision = part.op == ExprOp::Div;
    if (part.op == ExprOp::Neg) {
      steps.push_back({at, std::nullopt});
      at = part.operands[0];
      continue;
    }
    if (part.op != ExprOp::Mul && !isDivision)
      return isNone();
    const bool inFirst = readsElement(part.operands[0]), inSecond = readsElement(part.operands[1]);
    if (inFirst == inSecond || (isDivision && inSecond))
      return isNone();
    steps.push_back({at, part.operands[inFirst ? 1 : 0]});
    at = part.operands[inFirst ? 0 : 1];
  }
  std::optional<ExprId> factor;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const ExprOp op = exprs_[step->made].op;
    const SourceRange range = exprs_[step->made].range;
    if (op == ExprOp::Mul && !factor) {
      factor = step->other;
      continue;
    }
    std::vector<ExprId> operands = {factor ? *factor : builder_.constant(ScalarType::F32, 1, range)};
    if (step->other)
      operands.push_back(*step->other);
    factor = apply(op, ScalarType::F32, std::move(operands), range);
    if (!factor)
      return std::nullopt;
  }
  if (factor && builder_.isConstant(*factor) && builder_[*factor].value == 1)
    factor.reset();
  return std::optional(factor);
}

bool ExprSema::knows(const Ident &name, const Scope &scope) const {
  return parseBuiltin(name.text) || lookUp(name.text, scope).declaration != nullptr ||
         parsed_.brokenNames.count(name.text) > 0;
}

std::optional<std::optional<ExprId>> ExprSema::evaluateMask(AstExprId id, const Scope &scope,
                                                            SaidBounds &said) {
  const AstExpr &expr = ast(id);
  const bool isTree = expr.kind == AstExprKind::Name && expr.name.text == "tree";
  if (isTree || isPathBound(expr, scope)) {
    (isTree ? said.tree : said.path) = expr.range;
    return std::optional<std::optional<ExprId>>(std::in_place); // no mask beside the bound
  }
  if (expr.kind == AstExprKind::Binary && expr.op == ExprOp::And) {
    auto left = evaluateMask(expr.operands[0], scope, said);
    auto right = evaluateMask(expr.operands[1], scope, said);
    if (!left || !right)
      return std::nullopt;
    if (!*left || !*right)
      return *left ? left : right;
    std::optional<ExprId> both = apply(ExprOp::And, ScalarType::Bool, {**left, **right}, expr.range);
    return both ? std::optional(both) : std::nullopt;
  }
  std::optional<ExprId> value = evaluateAs(id, scope, ScalarType::Bool, "a mask", Place::Mask);
  if (value && !checkReadsNoScore(*value, id, scope, "a mask",
                                  "a score that is -inf hides a token: `score = condition ? s : -inf;`"))
    return std::nullopt;
  return value ? std::optional(value) : std::nullopt;
}

} // namespace deft::spec
