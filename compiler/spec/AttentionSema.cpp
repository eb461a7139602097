#include "compiler/spec/AttentionSema.h"

#include "compiler/spec/Limits.h"
#include "compiler/spec/Names.h"
#include "compiler/spec/Positions.h"
#include "compiler/support/NearestName.h"

#include <cfloat>
#include <cmath>

namespace deft::spec {
AttentionSema::AttentionSema(const ParsedFiles &parsed, const MergedAttention &merged,
                             const std::set<const AstFunction *> &badFunctions, Reporter &reporter)
    : parsed_(parsed), merged_(merged), reporter_(reporter),
      exprs_(
          parsed, &merged, variant_.params,
          [this](const std::string &key, support::SourceRange use) { return headConstant(key, use); },
          reporter) {
  exprs_.addBadFunctions(badFunctions);
}

Variant AttentionSema::run() {
  variant_.name = merged_.attention->name.text;
  variant_.range = merged_.attention->name.range;
  checkRequired();
  declareParams(); // before anything that could read one
  checkHeads();
  checkTypes();
  checkCache();
  checkDefaults();
  checkOwnDeclarations();
  checkScale();
  checkRows();
  checkValue();
  checkMask();
  checkScore();
  checkNormalize();
  checkOutput();
  checkSchedule();
  checkSelect();
  checkProducts();
  finishExprs();
  checkGivenLists();
  return std::move(variant_);
}

const AstProperty *AttentionSema::enter(const char *key) {
  Inherited<AstProperty> property = merged_.property(key);
  reporter_.setInheritance(property.owner, property.item ? merged_.attention : nullptr);
  return property.item;
}

std::optional<AttentionSema::Keyed> AttentionSema::keyed(const char *key) {
  const AstProperty *property = enter(key);
  if (!property)
    return std::nullopt;
  Keyed value;
  value.expr = std::get<AstExprValue>(property->value).expr;
  value.property = property;
  value.scope.owner = merged_.property(key).owner;
  return value;
}

void AttentionSema::noteOrigin(support::Diagnostic &report, const Inherited<AstProperty> &property,
                               support::SourceRange range, const std::string &what) {
  report.withNote(range, what + (merged_.isOwn(property.owner)
                                     ? " here"
                                     : " here, inherited from `" + property.owner->name.text + "`"));
}

void AttentionSema::checkRequired() {
  reporter_.setInheritance(nullptr, nullptr);
  for (const AstAttention *owner : merged_.chain)
    if (owner->isBroken)
      return; // what seems to be missing may be what could not be read
  std::vector<std::string> missing;
  for (const char *key : requiredKeys())
    if (!merged_.property(key).item)
      missing.push_back("`" + std::string(key) + "`");
  if (missing.empty())
    return;
  std::string list = missing[0];
  for (std::size_t i = 1; i < missing.size(); ++i)
    list += (i + 1 == missing.size() ? " and " : ", ") + missing[i];
  reporter_.error(merged_.attention->name.range,
                  "attention `" + merged_.attention->name.text + "` has no " + list);
}

void AttentionSema::declareParams() {
  for (const Inherited<AstDeclaration> &declared : merged_.order) {
    const auto *param = std::get_if<AstParam>(declared.item);
    if (!param)
      continue;
    reporter_.setInheritance(declared.owner, merged_.attention);
    if (variant_.params.size() == kMaxParams) {
      reporter_.error(param->name.range,
                      "more than the limit of " + std::to_string(kMaxParams) + " parameters");
      return;
    }
    variant_.params.push_back({param->name.text, param->type.scalar, param->type.shape, std::nullopt,
                               param->name.range, param->type.size});
  }
}

void AttentionSema::checkDefaults() {
  std::size_t index = 0;
  for (const Inherited<AstDeclaration> &declared : merged_.order) {
    const auto *param = std::get_if<AstParam>(declared.item);
    if (!param || index == variant_.params.size())
      continue;
    reporter_.setInheritance(declared.owner, merged_.attention);
    Param &checked = variant_.params[index++];
    if (!param->defaultValue)
      continue;
    if (checked.shape != Param::Shape::Scalar) {
      reporter_.error(parsed_.arena[*param->defaultValue].range, "an array has no default value");
      continue;
    }
    ExprSema::Scope scope;
    scope.owner = declared.owner;
    checked.defaultValue = exprs_.evaluateConstant(*param->defaultValue, scope, checked.type,
                                                   "the default of `" + checked.name + "`");
  }
}

/// Functions and `let`s are checked once, where they are written, whether used or not. Apart from the
/// variant's own expressions, and each function by itself, so that what is not used counts towards no limit.
void AttentionSema::checkOwnDeclarations() {
  std::vector<Param> params = variant_.params;
  auto makeChecker = [&] {
    return ExprSema(
        parsed_, &merged_, params,
        [this](const std::string &key, support::SourceRange use) { return headConstant(key, use); },
        reporter_);
  };
  ExprSema letChecker = makeChecker();
  reporter_.setInheritance(merged_.attention, merged_.attention);
  for (const Inherited<AstDeclaration> &declared : merged_.order) {
    if (!merged_.isOwn(declared.owner))
      continue;
    if (const auto *let = std::get_if<AstLet>(declared.item)) {
      letChecker.checkLet(*let, declared.owner);
    } else if (const auto *function = std::get_if<AstFunction>(declared.item)) {
      ExprSema checker = makeChecker();
      checker.checkFunction(*function, declared.owner);
      exprs_.addBadFunctions(checker.badFunctions());
    }
  }
}

void AttentionSema::checkScale() {
  variant_.scale = 1 / std::sqrt(static_cast<double>(variant_.tensors.k.dim));
  std::optional<Keyed> scale = keyed("scale");
  if (!scale) {
    checkNeedsNoScale();
    return;
  }
  std::optional<double> value =
      exprs_.evaluateConstant(scale->expr, scale->scope, ScalarType::F32, "`scale`");
  if (!value)
    return;
  // Not FLT_MIN: a smaller scale would be flushed to zero on devices.
  if (!(*value >= FLT_MIN) || !(*value <= FLT_MAX))
    reporter_.error(parsed_.arena[scale->expr].range, "the scale must be positive and finite");
  variant_.scale = *value;
}

/// What a hook of rows may read while `pos` stands for the row's own position.
template <bool (*mayRead)(Builtin)> static bool orPosition(Builtin builtin) {
  return builtin == Builtin::Pos || mayRead(builtin);
}

void AttentionSema::checkRows() {
  variant_.query = rowHook("query", "an element of the query", orPosition<mayReadInQuery>,
                           "`query` may not read values of a token",
                           "it is the same for all tokens; put factors that depend on a token into `score`");
  variant_.key = rowHook("key", "an element of the key", orPosition<mayReadInKey>,
                         "`key` may not read values of a query",
                         "it is the same for all queries; put factors that depend on a query into `score`");
  if (variant_.key)
    checkMayChangeKeys();
}

void AttentionSema::checkValue() {
  std::optional<Keyed> hook = keyed("value");
  if (!hook)
    return;
  std::optional<ExprId> value =
      exprs_.evaluateAs(hook->expr, hook->scope, ScalarType::F32, "an element of the value");
  const auto mayRead = [](Builtin builtin) { return builtin == Builtin::X || mayReadInValueFactor(builtin); };
  if (!value || !exprs_.checkReads(*value, hook->expr, hook->scope, mayRead,
                                   "`value` may read `x`, `kv_pos`, `depth`, `kv_head` and parameters of "
                                   "tokens and KV heads only",
                                   "rows are sums of V: put factors that all tokens share into `output`"))
    return;
  if (const auto factor = exprs_.factorOfElement(*value, hook->expr))
    variant_.valueFactor = *factor;
}

std::optional<ExprId> AttentionSema::rowHook(const char *key, const char *what, bool (*mayRead)(Builtin),
                                             const char *problem, const char *hint) {
  std::optional<Keyed> hook = keyed(key);
  if (!hook)
    return std::nullopt;
  std::optional<ExprId> value = exprs_.evaluateAs(hook->expr, hook->scope, ScalarType::F32, what);
  if (!value || !exprs_.checkReads(*value, hook->expr, hook->scope, mayRead, problem, hint) ||
      isElement(*value))
    return std::nullopt;
  return value;
}

bool AttentionSema::isElement(ExprId value) const {
  const Expr &root = exprs_.exprs()[value];
  return root.op == ExprOp::Builtin && root.builtin == Builtin::X;
}

void AttentionSema::checkMask() {
  std::optional<Keyed> mask = keyed("mask");
  if (!mask)
    return;
  ExprSema::SaidBounds said;
  auto value = exprs_.evaluateMask(mask->expr, mask->scope, said);
  if (said.tree && said.path)
    reporter_.error(*said.path, "a mask has one bound, `tree` or `path`")
        .withHint("`path` includes `tree`, and the rest of the query's own node")
        .withNote(*said.tree, "`tree` is written here");
  variant_.bound = said.path ? MaskBound::Path : MaskBound::Tree;
  if (!value || !*value)
    return;
  const Expr &root = exprs_.exprs()[**value];
  if (root.op == ExprOp::Constant && root.value != 0)
    return;
  variant_.mask = *value;
}

void AttentionSema::checkScore() {
  std::optional<Keyed> score = keyed("score");
  if (!score)
    return;
  std::optional<ExprId> value =
      exprs_.evaluateAs(score->expr, score->scope, ScalarType::F32, "the score", ExprSema::Place::Score);
  if (!value || !exprs_.checkReadsNoElement(*value, score->expr, score->scope, "a score"))
    return;
  const Expr &root = exprs_.exprs()[*value];
  if (root.op != ExprOp::Builtin || root.builtin != Builtin::S)
    variant_.score = value;
}

void AttentionSema::checkNormalize() {
  const AstProperty *property = enter("normalize");
  if (!property)
    return;
  const auto &normalize = std::get<AstNormalizeValue>(property->value);
  std::optional<Normalize> kind = parseNormalize(normalize.kind.text);
  if (!kind) {
    reporter_
        .error(normalize.kind.range,
               "unknown normalization `" + normalize.kind.text + "`, it is `softmax` or `sigmoid`")
        .withHint(support::didYouMean(normalize.kind.text, {"softmax", "sigmoid"}));
    return;
  }
  variant_.normalize = *kind;
  Inherited<AstProperty> origin = merged_.property("normalize");
  if (normalize.bias) {
    ExprSema::Scope scope;
    scope.owner = origin.owner;
    std::optional<ExprId> bias =
        exprs_.evaluateAs(*normalize.bias, scope, ScalarType::F32, "the bias", ExprSema::Place::Score);
    if (bias && exprs_.checkReadsNoScore(*bias, *normalize.bias, scope, "the bias",
                                         "put parts that depend on `s` into `score`"))
      variant_.sigmoidBias = bias;
  }
  if (normalize.sink) {
    ExprSema::Scope scope;
    scope.owner = origin.owner;
    std::optional<ExprId> sink =
        exprs_.evaluateAs(*normalize.sink, scope, ScalarType::F32, "the sink", ExprSema::Place::Score);
    if (sink && exprs_.checkReadsHeadOnly(*sink, *normalize.sink, scope, "the sink"))
      variant_.sink = sink;
  }
  if (*kind != Normalize::Sigmoid || !variant_.withLse)
    return;
  Inherited<AstProperty> output = merged_.property("output");
  support::SourceRange lse =
      std::get<AstOutputValue>(output.item->value).withLse.value_or(normalize.kind.range);
  // The heir's own text is the one to mend; when both are, the wish for an lse.
  bool atOutput = merged_.isOwn(output.owner) || !merged_.isOwn(origin.owner);
  enter(atOutput ? "output" : "normalize");
  support::Diagnostic &report = reporter_.error(atOutput ? lse : normalize.kind.range, "sigmoid has no lse");
  if (atOutput)
    noteOrigin(report, origin, normalize.kind.range, "normalized by sigmoid");
  else
    noteOrigin(report, output, lse, "the lse is asked for");
}

void AttentionSema::checkOutput() {
  const AstProperty *property = enter("output");
  if (!property)
    return;
  const auto &output = std::get<AstOutputValue>(property->value);
  if (!output.value)
    return;
  ExprSema::Scope scope;
  scope.owner = merged_.property("output").owner;
  const AstExpr &expr = parsed_.arena[*output.value];
  if (expr.kind == AstExprKind::Name && !exprs_.knows(expr.name, scope)) {
    dtypeOf(expr.name); // which it is meant to be
    return;
  }
  std::optional<ExprId> value =
      exprs_.evaluateAs(*output.value, scope, ScalarType::F32, "an element of the output");
  if (value &&
      exprs_.checkReads(
          *value, *output.value, scope, mayReadInOutput,
          "`output` may read `x`, `dim`, `q_pos`, `query`, `head`, `kv_head` and parameters only",
          "`output` applies to sums over tokens, element by element") &&
      !isElement(*value))
    variant_.output = value;
}

void AttentionSema::finishExprs() {
  std::vector<ExprId *> roots;
  for (std::optional<ExprId> *root : {&variant_.mask, &variant_.score, &variant_.sigmoidBias, &variant_.sink,
                                      &variant_.valueFactor, &variant_.output})
    if (*root)
      roots.push_back(&**root);
  std::vector<Expr> exprs = withPositions(exprs_.exprs(), roots, variant_.query, variant_.key);
  for (std::optional<ExprId> *root : {&variant_.query, &variant_.key})
    if (*root)
      roots.push_back(&**root);
  variant_.exprs = compactExprs(exprs, roots);
}

} // namespace deft::spec
