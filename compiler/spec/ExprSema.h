#pragma once

#include "compiler/spec/ExprBuilder.h"
#include "compiler/spec/Inheritance.h"

#include <functional>

namespace deft::spec {

/// Types, resolves and substitutes the expressions of one attention (or, without one, of top-level functions
/// on their own). A result of none means that an error was reported.
class ExprSema {
public:
  /// The value of a name of heads or dims, which stands at `use`; none when it is wrong or missing
  /// (reported).
  using HeadConstant = std::function<std::optional<int>(const std::string &key, support::SourceRange use)>;

  ExprSema(const ParsedFiles &parsed, const MergedAttention *attention, std::vector<Param> &params,
           HeadConstant headConstant, Reporter &reporter)
      : parsed_(parsed), attention_(attention), params_(params), headConstant_(std::move(headConstant)),
        reporter_(reporter), builder_(exprs_) {}

  ExprSema(const ExprSema &) = delete; // its builder points into it

  /// Where an expression stands: what its names may mean.
  struct Scope {
    const AstAttention *owner = nullptr; ///< whose text it is; none: the top level
    struct Binding {
      std::optional<ExprId> value;   ///< a scalar
      std::optional<int> arrayParam; ///< an array, passed by name
    };
    const std::map<std::string, Binding, std::less<>> *arguments = nullptr; ///< of the function around it
  };

  enum class Place { Operand, Mask, Score }; ///< only chooses the words of "unknown ..."

  std::optional<ExprId> evaluate(AstExprId expr, const Scope &scope, Place place = Place::Operand);
  /// The same, converted to `type` where i32 promotes; `what` names the value in the message.
  std::optional<ExprId> evaluateAs(AstExprId expr, const Scope &scope, ScalarType type,
                                   const std::string &what, Place place = Place::Operand);
  std::optional<double> evaluateConstant(AstExprId expr, const Scope &scope, ScalarType type,
                                         const std::string &what);
  /// Where a mask says which bound it stands beside.
  struct SaidBounds {
    std::optional<support::SourceRange> tree, path;
  };
  /// The conjuncts of a mask beside its bound; an empty inner optional when there are none.
  std::optional<std::optional<ExprId>> evaluateMask(AstExprId expr, const Scope &scope, SaidBounds &said);

  using MayRead = std::function<bool(Builtin)>;
  /// Reports reading what may not be read, with the place that does.
  bool checkReads(ExprId value, AstExprId expr, const Scope &scope, const MayRead &mayRead,
                  const std::string &problem, const std::string &hint);
  /// Reports reading `s` or an element, likewise.
  bool checkReadsNoScore(ExprId value, AstExprId expr, const Scope &scope, const std::string &what,
                         const std::string &hint);
  bool checkReadsNoElement(ExprId value, AstExprId expr, const Scope &scope, const std::string &what);
  /// Reports reading anything but heads and parameters, likewise.
  bool checkReadsHeadOnly(ExprId value, AstExprId expr, const Scope &scope, const std::string &what);
  /// By what `value` multiplies the element `x`; the inner one is none where that is 1. Reports what is no
  /// product of `x` and others that do not read it.
  std::optional<std::optional<ExprId>> factorOfElement(ExprId value, AstExprId expr);
  /// Whether a name is the bound `path`: what is declared hides it, which came later than many specs.
  bool isPathBound(const AstExpr &expr, const Scope &scope) const;
  /// Whether a name means something here, or would if its declaration could be read.
  bool knows(const Ident &name, const Scope &scope) const;
  /// Checks a function by itself, with arguments that are not constant. Calls of a function that is wrong by
  /// itself say nothing more.
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
