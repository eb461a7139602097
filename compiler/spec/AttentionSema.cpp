#include "compiler/spec/AttentionSema.h"

#include "compiler/spec/ForeignWords.h"
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
          parsed, &merged, variant_.params, [this](const std::string &key) { return headConstant(key); },
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
  checkQuery();
  checkKey();
  checkValue();
  checkMask();
  checkScore();
  checkNormalize();
  checkOutput();
  checkSchedule();
  checkSelect();
  finishExprs();
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
  for (const char *key : {"query_heads", "kv_heads", "head_dim"})
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

std::optional<int> AttentionSema::headConstant(const std::string &key) {
  Head &head = heads_[key];
  if (head.state == HeadState::Known)
    return head.value;
  Inherited<AstProperty> property = merged_.property(key);
  if (!property.item)
    return std::nullopt;
  if (head.state == HeadState::Active) {
    reporter_.error(property.item->valueRange, "`" + key + "` is defined by itself");
    return std::nullopt;
  }
  head.state = HeadState::Active;
  ExprSema::Scope scope;
  scope.owner = property.owner;
  AstExprId expr = std::get<AstExprValue>(property.item->value).expr;
  std::optional<double> value = exprs_.evaluateConstant(expr, scope, ScalarType::I32, "`" + key + "`");
  int maximum = key == "head_dim" ? kMaxHeadDim : kMaxHeads;
  std::string text = key + " = " + (value ? std::to_string(static_cast<int>(*value)) : "");
  support::SourceRange range = parsed_.arena[expr].range;
  if (value && *value < 1) {
    reporter_.error(range, text + " is below 1");
    value.reset();
  } else if (value && *value > maximum) {
    reporter_.error(range, text + " is above the limit of " + std::to_string(maximum));
    value.reset();
  } else if (value && key == "head_dim" && std::fmod(*value, kHeadDimStep) != 0) {
    int below = static_cast<int>(*value) / kHeadDimStep * kHeadDimStep;
    reporter_.error(range, text + " is not a multiple of " + std::to_string(kHeadDimStep))
        .withHint(below > 0 ? "the nearest are " + std::to_string(below) + " and " +
                                  std::to_string(below + kHeadDimStep)
                            : "the nearest is " + std::to_string(kHeadDimStep));
    value.reset();
  }
  head.state = HeadState::Known;
  if (value)
    head.value = static_cast<int>(*value);
  return head.value;
}

void AttentionSema::checkHeads() {
  for (const char *key : {"query_heads", "kv_heads", "head_dim"})
    if (enter(key))
      headConstant(key);
  std::optional<int> query = heads_["query_heads"].value, kv = heads_["kv_heads"].value;
  variant_.queryHeads = query.value_or(1);
  variant_.kvHeads = kv.value_or(1);
  // The language has one dim for all four.
  const int dim = heads_["head_dim"].value.value_or(kByteHeadDimStep);
  for (TensorType *tensor :
       {&variant_.tensors.q, &variant_.tensors.k, &variant_.tensors.v, &variant_.tensors.out})
    tensor->dim = dim;
  if (!query || !kv)
    return;
  // Pointed at what the reader is writing: an own value rather than an inherited one, the later of two.
  Inherited<AstProperty> q = merged_.property("query_heads"), k = merged_.property("kv_heads");
  bool atQuery = merged_.isOwn(q.owner) &&
                 (!merged_.isOwn(k.owner) || q.item->valueRange.begin > k.item->valueRange.begin);
  const Inherited<AstProperty> &wrong = atQuery ? q : k, &other = atQuery ? k : q;
  auto valueRange = [&](const Inherited<AstProperty> &p) {
    return parsed_.arena[std::get<AstExprValue>(p.item->value).expr].range;
  };
  std::string problem;
  if (*query % *kv != 0)
    problem =
        "query_heads = " + std::to_string(*query) + " is not a multiple of kv_heads = " + std::to_string(*kv);
  else if (*query / *kv > kMaxRatio)
    problem = "query_heads / kv_heads = " + std::to_string(*query / *kv) + " is above the limit of " +
              std::to_string(kMaxRatio);
  if (problem.empty())
    return;
  enter(atQuery ? "query_heads" : "kv_heads");
  support::Diagnostic &report = reporter_.error(valueRange(wrong), problem);
  noteOrigin(report, other, valueRange(other),
             atQuery ? "kv_heads is " + std::to_string(*kv) : "query_heads is " + std::to_string(*query));
}

std::optional<DType> AttentionSema::dtypeOf(const Ident &word) {
  const std::optional<DType> dtype = parseDType(word.text);
  if (dtype && elementBytes(*dtype) == 2)
    return dtype;
  if (dtype)
    reporter_.error(word.range, "`" + word.text + "` is a dtype of caches only")
        .withHint("write `kv_cache = paged(dtype = " + word.text + ")`");
  else
    reporter_.error(word.range, "unknown dtype `" + word.text + "`, it is f16 or bf16")
        .withHint(isForeignFp8(word.text)
                      ? "8-bit floats are for caches: `kv_cache = paged(dtype = fp8_e4m3)`, or `fp8_e5m2`"
                      : suggest(word.text, {"f16", "bf16"}));
  return std::nullopt;
}

void AttentionSema::checkTypes() {
  Tensors &tensors = variant_.tensors;
  if (const AstProperty *property = enter("dtype"))
    tensors.q.dtype = dtypeOf(std::get<AstWordValue>(property->value).word).value_or(tensors.q.dtype);
  // The cache's own is read with the cache.
  tensors.k.dtype = tensors.v.dtype = tensors.out.dtype = tensors.q.dtype;
  if (const AstProperty *property = enter("output")) {
    const auto &output = std::get<AstOutputValue>(property->value);
    if (output.dtype)
      tensors.out.dtype = dtypeOf(*output.dtype).value_or(tensors.out.dtype);
    variant_.withLse = output.withLse.has_value();
  }
}

void AttentionSema::checkCache() {
  const AstProperty *property = enter("kv_cache");
  if (!property)
    return;
  const auto &cache = std::get<AstCacheValue>(property->value);
  if (cache.kind.text == "contiguous") {
    variant_.cache = {false, 0, PageOrder::Nhd};
    return;
  }
  if (cache.kind.text != "paged") {
    reporter_
        .error(cache.kind.range,
               "unknown cache layout `" + cache.kind.text + "`, it is `paged` or `contiguous`")
        .withHint(support::didYouMean(cache.kind.text, {"paged", "contiguous"}));
    return;
  }
  if (cache.pageSize) {
    ExprSema::Scope scope;
    scope.owner = merged_.property("kv_cache").owner;
    std::optional<double> size =
        exprs_.evaluateConstant(*cache.pageSize, scope, ScalarType::I32, "`page_size`");
    if (size && (*size < 1 || *size > kMaxPageSize))
      reporter_.error(parsed_.arena[*cache.pageSize].range,
                      "page_size = " + std::to_string(static_cast<int>(*size)) + " is not between 1 and " +
                          std::to_string(kMaxPageSize));
    else if (size)
      variant_.cache.pageSize = static_cast<int>(*size);
  }
  if (cache.order) {
    if (std::optional<PageOrder> order = parsePageOrder(cache.order->text))
      variant_.cache.order = *order;
    else
      reporter_.error(cache.order->range, "unknown order `" + cache.order->text + "`, it is `nhd` or `hnd`");
  }
  if (cache.dtype) {
    const int dim = variant_.tensors.k.dim;
    const std::optional<DType> dtype = parseDType(cache.dtype->text);
    if (dtype && elementBytes(*dtype) == 1 && dim % kByteHeadDimStep != 0)
      reporter_.error(cache.dtype->range, "head_dim = " + std::to_string(dim) + " is not a multiple of " +
                                              std::to_string(kByteHeadDimStep) + ", which a cache of " +
                                              cache.dtype->text + " needs");
    if (dtype)
      variant_.tensors.k.dtype = variant_.tensors.v.dtype = *dtype;
    else
      reporter_
          .error(cache.dtype->range, "unknown dtype `" + cache.dtype->text +
                                         "` of a cache, it is f16, bf16, fp8_e4m3 or fp8_e5m2")
          .withHint(suggest(cache.dtype->text, dtypeNames()));
  }
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
        parsed_, &merged_, params, [this](const std::string &key) { return headConstant(key); }, reporter_);
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
  if (!scale)
    return;
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

void AttentionSema::checkQuery() {
  variant_.query = rowHook("query", "an element of the query", orPosition<mayReadInQuery>,
                           "`query` may not read what is of a token",
                           "it is the same for all tokens; what depends on one belongs into `score`");
}

void AttentionSema::checkKey() {
  variant_.key = rowHook("key", "an element of the key", orPosition<mayReadInKey>,
                         "`key` may not read what is of a query",
                         "it is the same for all queries; what depends on one belongs into `score`");
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
                                   "rows are sums of V: what is the same for all tokens of one belongs into "
                                   "`output`"))
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
        .withHint("`path` bounds what `tree` does, and the rest of the query's own node")
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
                                         "what depends on `s` belongs into `score`"))
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
          "tokens have been summed up by then, and each element is written by itself") &&
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
