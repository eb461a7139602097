#pragma once

#include "compiler/spec/ExprBuilder.h"
#include "compiler/spec/Inheritance.h"

#include <functional>

namespace deft::spec {

/// Types, resolves and substitutes the expressions of one attention, or of top-level functions without an
/// attention. An empty result means that an error was reported.
class ExprSema {
public:
  /// The value of a name for a number of heads or dims; `use` is its place. None if it is wrong or missing,
  /// which is reported.
  using HeadConstant = std::function<std::optional<int>(const std::string &key, support::SourceRange use)>;

  ExprSema(const ParsedFiles &parsed, const MergedAttention *attention, std::vector<Param> &params,
           HeadConstant headConstant, Reporter &reporter)
      : parsed_(parsed), attention_(attention), params_(params), headConstant_(std::move(headConstant)),
        reporter_(reporter), builder_(exprs_) {}

  ExprSema(const ExprSema &) = delete; // its builder refers to it

  /// The place of an expression, which decides the meaning of its names.
  struct Scope {
    const AstAttention *owner = nullptr; ///< the attention that contains it; null: the top level
    struct Binding {
      std::optional<ExprId> value;   ///< a scalar
      std::optional<int> arrayParam; ///< an array, passed by name
    };
    const std::map<std::string, Binding, std::less<>> *arguments = nullptr; ///< of the enclosing function
  };

  enum class Place { Operand, Mask, Score }; ///< only selects the message for unknown names

  std::optional<ExprId> evaluate(AstExprId expr, const Scope &scope, Place place = Place::Operand);
  /// The same, converted to `type` if i32 promotes to it; `what` names the value in the message.
  std::optional<ExprId> evaluateAs(AstExprId expr, const Scope &scope, ScalarType type,
                                   const std::string &what, Place place = Place::Operand);
  std::optional<double> evaluateConstant(AstExprId expr, const Scope &scope, ScalarType type,
                                         const std::string &what);
  /// The places where a mask names its bound.
  struct SaidBounds {
    std::optional<support::SourceRange> tree, path;
  };
  /// The conjuncts of a mask except its bound; an empty inner optional if there are none.
  std::optional<std::optional<ExprId>> evaluateMask(AstExprId expr, const Scope &scope, SaidBounds &said);

  using MayRead = std::function<bool(Builtin)>;
  /// Reports a read of a name that `mayRead` forbids, at the place of the read.
  bool checkReads(ExprId value, AstExprId expr, const Scope &scope, const MayRead &mayRead,
                  const std::string &problem, const std::string &hint);
  /// In the same way, reports a read of `s` or of an element.
  bool checkReadsNoScore(ExprId value, AstExprId expr, const Scope &scope, const std::string &what,
                         const std::string &hint);
  bool checkReadsNoElement(ExprId value, AstExprId expr, const Scope &scope, const std::string &what);
  /// In the same way, reports a read of anything except heads and parameters.
  bool checkReadsHeadOnly(ExprId value, AstExprId expr, const Scope &scope, const std::string &what);
  /// The factor of the element `x` in `value`; an empty inner optional if it is 1. Reports an expression that
  /// is not a product of `x` and factors that do not read it.
  std::optional<std::optional<ExprId>> factorOfElement(ExprId value, AstExprId expr);
  /// Whether a name is the bound `path`. A declaration hides this word, which is younger than many specs.
  bool isPathBound(const AstExpr &expr, const Scope &scope) const;
  /// Whether a name has a meaning here, or would have one if its declaration could be parsed.
  bool knows(const Ident &name, const Scope &scope) const;
  /// Checks a function alone, with arguments that are not constant. Calls of a faulty function report nothing
  /// more.
  void checkFunction(const AstFunction &function, const AstAttention *owner);

  void checkLet(const AstLet &let, const AstAttention *owner) { evaluateLet({}, let, owner); }

  const std::set<const AstFunction *> &badFunctions() const { return badFunctions_; }
  void addBadFunctions(const std::set<const AstFunction *> &functions) {
    badFunctions_.insert(functions.begin(), functions.end());
  }

  const std::vector<Expr> &exprs() const { return exprs_; }

private:
  std::optional<ExprId> evaluateLiteral(const AstExpr &expr, bool negated);
  std::optional<ExprId> evaluateName(const AstExpr &expr, const Scope &scope);
  std::optional<ExprId> evaluateDeclared(const AstExpr &expr, const AstDeclaration &declaration,
                                         const AstAttention *owner, const Scope &scope);
  std::optional<ExprId> evaluateLet(const AstExpr &use, const AstLet &let, const AstAttention *owner);
  void evaluateLetsInOrder();
  std::optional<ExprId> evaluateUnary(const AstExpr &expr, const Scope &scope);
  std::optional<ExprId> evaluateBinary(const AstExpr &expr, const Scope &scope);
  std::optional<ExprId> evaluateConditional(const AstExpr &expr, const Scope &scope);
  std::optional<ExprId> evaluateIndex(const AstExpr &expr, const Scope &scope);
  // ExprCalls.cpp
  std::optional<ExprId> evaluateCall(const AstExpr &expr, const Scope &scope, Place place);
  std::optional<ExprId> evaluateBuiltinCall(ExprOp op, const AstExpr &expr, const Scope &scope);
  std::optional<ExprId> callFunction(const AstFunction &function, const AstAttention *owner,
                                     const AstExpr &call, const Scope &scope);
  std::optional<ExprId> instantiate(const AstFunction &function, const AstAttention *owner,
                                    const std::map<std::string, Scope::Binding, std::less<>> &arguments,
                                    const support::SourceRange *call);
  std::optional<Scope::Binding> evaluateArgument(const AstFormal &formal, AstExprId argument,
                                                 const Scope &scope);
  void unknownFunction(const AstExpr &call, const Scope &scope, Place place);
  void unknownName(const AstExpr &name, const Scope &scope);
  bool checkCount(const AstExpr &call, std::size_t count);

  struct Found {
    const AstDeclaration *declaration = nullptr;
    const AstAttention *owner = nullptr;
  };
  Found lookUp(std::string_view name, const Scope &scope) const;
  std::vector<std::string> visibleNames(const Scope &scope, bool functions) const;
  std::optional<int> arrayParamNamed(const AstExpr &name, const Scope &scope);
  int paramIndex(std::string_view name) const;

  bool requireNumber(AstExprId expr, ExprId value, const std::string &op);
  bool requireBool(AstExprId expr, ExprId value, const std::string &op);
  ExprId toF32(ExprId value);
  void promote(std::vector<ExprId> &operands);
  std::optional<ExprId> apply(ExprOp op, ScalarType type, std::vector<ExprId> operands,
                              support::SourceRange range);
  template <typename Predicate>
  std::optional<support::SourceRange> findPart(AstExprId expr, const Scope &scope,
                                               const Predicate &predicate);
  bool spend(support::SourceRange range);

  const AstExpr &ast(AstExprId id) const { return parsed_.arena[id]; }

  const ParsedFiles &parsed_;
  const MergedAttention *attention_;
  std::vector<Param> &params_;
  HeadConstant headConstant_;
  Reporter &reporter_;
  std::vector<Expr> exprs_;
  ExprBuilder builder_;

  struct LetState {
    bool active = false;
    std::optional<ExprId> value;
  };
  std::map<const AstLet *, LetState> lets_;
  bool letsEvaluated_ = false;
  using CallKey = std::pair<const AstFunction *, std::vector<std::int64_t>>;
  std::map<CallKey, std::optional<ExprId>> calls_;
  std::vector<const AstFunction *> activeFunctions_;
  std::set<const AstFunction *> badFunctions_;
  std::size_t steps_ = 0;
  int depth_ = 0;
  bool exhausted_ = false;
};

} // namespace deft::spec
