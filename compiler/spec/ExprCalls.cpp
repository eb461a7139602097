#include "compiler/spec/ExprSema.h"
#include "compiler/spec/ForeignWords.h"
#include "compiler/spec/Names.h"
#include "compiler/support/NearestName.h"

#include <algorithm>

/// Calls: built-in functions, and functions of the language, which are substituted.
namespace deft::spec {
namespace {

std::string plural(std::size_t count, const char *noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

} // namespace

bool ExprSema::checkCount(const AstExpr &call, std::size_t count) {
  if (call.operands.size() == count)
    return true;
  reporter_.error(call.range, "`" + call.name.text + "` takes " + plural(count, "argument") + ", got " +
                                  std::to_string(call.operands.size()));
  return false;
}

std::optional<ExprId> ExprSema::evaluateCall(const AstExpr &call, const Scope &scope, Place place) {
  if (std::optional<ExprOp> op = parseFunction(call.name.text))
    return evaluateBuiltinCall(*op, call, scope);
  Found found = lookUp(call.name.text, scope);
  if (!found.declaration) {
    unknownFunction(call, scope, place);
    return std::nullopt;
  }
  if (const auto *function = std::get_if<AstFunction>(found.declaration))
    return callFunction(*function, found.owner, call, scope);
  reporter_.error(call.name.range, "`" + call.name.text + "` is not a function")
      .withNote(declaredName(*found.declaration).range, "it is defined here");
  return std::nullopt;
}

void ExprSema::unknownFunction(const AstExpr &call, const Scope &scope, Place place) {
  const std::string &name = call.name.text;
  if (parsed_.brokenNames.count(name))
    return;
  const char *what = place == Place::Mask ? "mask" : place == Place::Score ? "score" : "function";
  support::Diagnostic &report =
      reporter_.error(call.name.range, std::string("unknown ") + what + " `" + name + "`");
  const std::vector<std::string> visible = visibleNames(scope, /*functions=*/true);
  const std::vector<std::string> library =
      parsed_.libraryFunctions ? parsed_.libraryFunctions() : std::vector<std::string>();
  auto isIn = [](const std::vector<std::string> &names, const std::string &one) {
    return std::find(names.begin(), names.end(), one) != names.end();
  };
  if (isIn(library, name)) {
    report.withHint("it is in the library: `import \"library.deft\";`");
    return;
  }
  if (const std::string hint = hintForOperator(name); !hint.empty()) {
    report.withHint(hint);
    return;
  }
  std::vector<std::string> all = visible;
  all.insert(all.end(), library.begin(), library.end());
  std::string nearest = support::nearestName(name, all);
  bool needsImport = !nearest.empty() && !isIn(visible, nearest);
  if (!nearest.empty())
    report.withHint("did you mean `" + nearest + "`?" +
                    (needsImport ? " it needs `import \"library.deft\";`" : ""));
}

std::optional<ExprId> ExprSema::evaluateBuiltinCall(ExprOp op, const AstExpr &call, const Scope &scope) {
  const Operation &operation = operationOf(op);
  std::vector<ExprId> values;
  bool ok = checkCount(call, static_cast<std::size_t>(operation.operands));
  for (AstExprId argument : call.operands) {
    std::optional<ExprId> value = evaluate(argument, scope);
    ok &= value && requireNumber(argument, *value, call.name.text);
    values.push_back(value.value_or(0));
  }
  if (!ok)
    return std::nullopt;
  if (operation.typing == Typing::Integers) {
    for (std::size_t i = 0; i < values.size(); ++i)
      if (builder_[values[i]].type != ScalarType::I32) {
        support::Diagnostic &report =
            reporter_.error(ast(call.operands[i]).range, "`" + call.name.text + "` takes i32, this is f32");
        if (op == ExprOp::FloorDiv)
          report.withHint("use `floor(a / b)` for f32");
        return std::nullopt;
      }
    return apply(op, ScalarType::I32, values, call.range);
  }
  if (operation.typing == Typing::Reals)
    values[0] = toF32(values[0]);
  promote(values);
  return apply(op, builder_[values[0]].type, values, call.range);
}

std::optional<ExprSema::Scope::Binding> ExprSema::evaluateArgument(const AstFormal &formal,
                                                                   AstExprId argument, const Scope &scope) {
  const AstExpr &expr = ast(argument);
  Scope::Binding binding;
  if (formal.type.shape == Param::Shape::Scalar) {
    binding.value = evaluateAs(argument, scope, formal.type.scalar, "argument `" + formal.name.text + "`");
    return binding.value ? std::optional(binding) : std::nullopt;
  }
  if (expr.kind == AstExprKind::Name)
    binding.arrayParam = arrayParamNamed(expr, scope);
  bool fits = binding.arrayParam && params_[*binding.arrayParam].type == formal.type.scalar &&
              params_[*binding.arrayParam].shape == formal.type.shape &&
              params_[*binding.arrayParam].size == formal.type.size;
  if (fits)
    return binding;
  reporter_.error(expr.range, "argument `" + formal.name.text + "` must be the name of a parameter of type " +
                                  typeText(formal.type));
  return std::nullopt;
}

std::optional<ExprId> ExprSema::callFunction(const AstFunction &function, const AstAttention *owner,
                                             const AstExpr &call, const Scope &scope) {
  if (std::find(activeFunctions_.begin(), activeFunctions_.end(), &function) != activeFunctions_.end()) {
    reporter_.error(call.name.range, "`" + call.name.text + "` calls itself")
        .withNote(function.name.range, "it is defined here");
    return std::nullopt;
  }
  if (!checkCount(call, function.formals.size()))
    return std::nullopt;
  std::map<std::string, Scope::Binding, std::less<>> arguments;
  CallKey key{&function, {}};
  bool ok = true;
  for (std::size_t i = 0; i < call.operands.size(); ++i) {
    std::optional<Scope::Binding> argument = evaluateArgument(function.formals[i], call.operands[i], scope);
    ok &= argument.has_value();
    if (!argument)
      continue;
    arguments[function.formals[i].name.text] = *argument;
    // An argument is a value or else an array. Arrays count down from -1, and never meet a value's index.
    key.second.push_back(argument->value ? static_cast<std::int64_t>(*argument->value)
                                         : -1 - static_cast<std::int64_t>(argument->arrayParam.value_or(0)));
  }
  if (!ok || badFunctions_.count(&function))
    return std::nullopt;
  auto known = calls_.find(key);
  if (known == calls_.end())
    known = calls_.emplace(std::move(key), instantiate(function, owner, arguments, &call.range)).first;
  return known->second;
}

std::optional<ExprId>
ExprSema::instantiate(const AstFunction &function, const AstAttention *owner,
                      const std::map<std::string, Scope::Binding, std::less<>> &arguments,
                      const support::SourceRange *call) {
  Scope scope;
  scope.owner = owner;
  scope.arguments = &arguments;
  activeFunctions_.push_back(&function);
  if (call)
    reporter_.enterCall(*call);
  const bool isMask = function.result() == ScalarType::Bool, isScore = function.kind.text == "score";
  std::optional<ExprId> value = evaluateAs(
      function.body, scope, function.result(),
      "the value of " + std::string(function.kind.text == "output" ? "an " : "a ") + function.kind.text,
      isMask    ? Place::Mask
      : isScore ? Place::Score
                : Place::Operand);
  if (call)
    reporter_.leaveCall();
  activeFunctions_.pop_back();
  if (!value && !call)
    badFunctions_.insert(&function);
  return value;
}

void ExprSema::checkFunction(const AstFunction &function, const AstAttention *owner) {
  std::map<std::string, Scope::Binding, std::less<>> arguments;
  std::set<std::string> names;
  std::size_t paramCount = params_.size();
  for (const AstFormal &formal : function.formals) {
    if (!names.insert(formal.name.text).second)
      reporter_.error(formal.name.range, "argument `" + formal.name.text + "` is named twice");
    // An argument is stood for by a parameter of its type: a value that nothing is known about. The space in
    // its name keeps it out of reach of the text.
    Param stand{"argument " + formal.name.text,
                formal.type.scalar,
                formal.type.shape,
                std::nullopt,
                formal.name.range,
                formal.type.size};
    int index = static_cast<int>(params_.size());
    params_.push_back(stand);
    Scope::Binding &binding = arguments[formal.name.text];
    if (stand.shape == Param::Shape::Scalar)
      binding.value = builder_.param(index, stand, formal.name.range);
    else
      binding.arrayParam = index;
  }
  instantiate(function, owner, arguments, nullptr);
  params_.resize(paramCount);
}

} // namespace deft::spec
