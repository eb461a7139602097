#include "compiler/spec/ExprSema.h"
#include "compiler/spec/ForeignWords.h"
#include "compiler/spec/Names.h"

#include <limits>
#include <utility>

/// Names in expressions: what is visible where, `let`s and parameters.
namespace deft::spec {

ExprSema::Found ExprSema::lookUp(std::string_view name, const Scope &scope) const {
  if (scope.owner && attention_) {
    auto found = attention_->declarations.find(name);
    if (found != attention_->declarations.end())
      return {found->second.item, found->second.owner};
  }
  auto found = parsed_.globals.find(name);
  return found == parsed_.globals.end() ? Found{} : Found{found->second, nullptr};
}

std::vector<std::string> ExprSema::visibleNames(const Scope &scope, bool functions) const {
  std::vector<std::string> names;
  auto add = [&](const std::string &name, const AstDeclaration &declaration) {
    if (std::holds_alternative<AstFunction>(declaration) == functions)
      names.push_back(name);
  };
  if (scope.arguments && !functions)
    for (const auto &[name, binding] : *scope.arguments)
      names.push_back(name);
  if (scope.owner && attention_)
    for (const auto &[name, declaration] : attention_->declarations)
      add(name, *declaration.item);
  for (const auto &[name, declaration] : parsed_.globals)
    add(name, *declaration);
  for (const std::string &name : functions ? functionNames() : builtinNames())
    names.push_back(name);
  if (!functions)
    names.insert(names.end(),
                 {"query_heads", "kv_heads", "head_dim", "key_dim", "value_dim", "true", "false", "inf"});
  return names;
}

int ExprSema::paramIndex(std::string_view name) const {
  for (std::size_t i = 0; i < params_.size(); ++i)
    if (params_[i].name == name)
      return static_cast<int>(i);
  return -1;
}

/// The array parameter that a name stands for: directly, or as the argument of a function.
std::optional<int> ExprSema::arrayParamNamed(const AstExpr &expr, const Scope &scope) {
  if (scope.arguments) {
    auto bound = scope.arguments->find(expr.name.text);
    if (bound != scope.arguments->end())
      return bound->second.arrayParam;
  }
  Found found = lookUp(expr.name.text, scope);
  if (!found.declaration || !std::holds_alternative<AstParam>(*found.declaration))
    return std::nullopt;
  int index = paramIndex(expr.name.text);
  if (index < 0 || params_[index].shape == Param::Shape::Scalar)
    return std::nullopt;
  return index;
}

void ExprSema::unknownName(const AstExpr &expr, const Scope &scope) {
  if (parsed_.brokenNames.count(expr.name.text))
    return;
  reporter_.error(expr.name.range, "unknown name `" + expr.name.text + "`")
      .withHint(suggest(expr.name.text, visibleNames(scope, /*functions=*/false)));
}

bool ExprSema::isPathBound(const AstExpr &expr, const Scope &scope) const {
  if (expr.kind != AstExprKind::Name || expr.name.text != "path")
    return false;
  const bool isArgument = scope.arguments && scope.arguments->find(expr.name.text) != scope.arguments->end();
  return !isArgument && !lookUp(expr.name.text, scope).declaration &&
         parsed_.brokenNames.count(expr.name.text) == 0;
}

std::optional<ExprId> ExprSema::evaluateName(const AstExpr &expr, const Scope &scope) {
  const std::string &name = expr.name.text;
  std::optional<int> array = arrayParamNamed(expr, scope);
  if (array) {
    reporter_.error(expr.range, "`" + name + "` is an array")
        .withHint("its element is `" + name + "[" + indexName(params_[*array].shape) + "]`")
        .withNote(params_[*array].range, "it is declared here");
    return std::nullopt;
  }
  if (scope.arguments) {
    auto bound = scope.arguments->find(name);
    if (bound != scope.arguments->end())
      return bound->second.value;
  }
  if (name == "tree" || isPathBound(expr, scope)) {
    reporter_
        .error(expr.range,
               "`" + name + "` may only be one of the conditions that `&&` joins at the top of `mask`")
        .withHint("a query sees only tokens of its path, whatever the mask");
    return std::nullopt;
  }
  if (name == "true" || name == "false")
    return builder_.constant(ScalarType::Bool, name == "true", expr.range);
  if (name == "inf")
    return builder_.constant(ScalarType::F32, std::numeric_limits<double>::infinity(), expr.range);
  // What is declared hides the names of an element, which came later than many specs.
  if (std::optional<Builtin> builtin = parseBuiltin(name);
      builtin && !(isOfElement(*builtin) && lookUp(name, scope).declaration))
    return builder_.builtin(*builtin, expr.range);
  // A declaration of that name hides `key_dim` and `value_dim`.
  const bool isDim = (name == "key_dim" || name == "value_dim") && !lookUp(name, scope).declaration;
  if (name == "query_heads" || name == "kv_heads" || name == "head_dim" || isDim) {
    if (!headConstant_) // a top-level function by itself: some integer
      return builder_.builtin(Builtin::Query, expr.range);
    std::optional<int> value = headConstant_(name, expr.range);
    return value ? std::optional(builder_.constant(ScalarType::I32, *value, expr.range)) : std::nullopt;
  }
  Found found = lookUp(name, scope);
  if (!found.declaration) {
    unknownName(expr, scope);
    return std::nullopt;
  }
  return evaluateDeclared(expr, *found.declaration, found.owner, scope);
}

std::optional<ExprId> ExprSema::evaluateDeclared(const AstExpr &expr, const AstDeclaration &declaration,
                                                 const AstAttention *owner, const Scope &scope) {
  if (std::holds_alternative<AstParam>(declaration)) {
    int index = paramIndex(expr.name.text);
    if (index < 0)
      return std::nullopt; // its declaration is wrong, which was reported
    return builder_.param(index, params_[index], expr.range);
  }
  if (std::holds_alternative<AstFunction>(declaration)) {
    reporter_.error(expr.range, "`" + expr.name.text + "` is a function and needs its arguments");
    return std::nullopt;
  }
  const AstLet &let = std::get<AstLet>(declaration);
  bool sameBlock = owner == scope.owner && let.name.range.file == expr.range.file;
  if (sameBlock && expr.range.begin < let.name.range.begin) {
    reporter_.error(expr.range, "`" + expr.name.text + "` is used before its `let`")
        .withNote(let.name.range, "it is defined here");
    return std::nullopt;
  }
  return evaluateLet(expr, let, owner);
}

/// Evaluates all `let`s in their order when the first is wanted: each then finds those before it known, and a
/// long chain of them needs no deep recursion.
void ExprSema::evaluateLetsInOrder() {
  if (std::exchange(letsEvaluated_, true))
    return;
  for (auto file = parsed_.files.rbegin(); file != parsed_.files.rend(); ++file) // imported ones first
    for (const AstDeclaration &declaration : file->declarations)
      if (const auto *let = std::get_if<AstLet>(&declaration))
        evaluateLet({}, *let, nullptr);
  if (attention_)
    for (const Inherited<AstDeclaration> &declared : attention_->order)
      if (const auto *let = std::get_if<AstLet>(declared.item))
        evaluateLet({}, *let, declared.owner);
}

std::optional<ExprId> ExprSema::evaluateLet(const AstExpr &use, const AstLet &let,
                                            const AstAttention *owner) {
  evaluateLetsInOrder();
  auto [state, isNew] = lets_.try_emplace(&let);
  if (state->second.active) {
    reporter_.error(use.range, "`" + let.name.text + "` is defined by itself")
        .withNote(let.name.range, "it is defined here");
    return std::nullopt;
  }
  if (isNew) {
    state->second.active = true;
    Scope scope;
    scope.owner = owner;
    std::optional<ExprId> value = evaluate(let.value, scope);
    state->second.value = value;
    state->second.active = false;
  }
  return state->second.value;
}

} // namespace deft::spec
