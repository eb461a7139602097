#pragma once

#include "compiler/spec/Variant.h"

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace deft::spec {

/// The result of folding an operation on constants: a value, or the reason why there is none.
struct Folded {
  double value = 0;
  std::string problem; ///< empty: no problem
};

/// The value of `op` on constants of type `operandType`. i32 uses exact arithmetic, f32 uses double. A result
/// outside its type is a problem.
Folded fold(ExprOp op, ScalarType operandType, const std::vector<double> &operands);

/// Builds the typed arena of a variant. Equal operations on equal operands share one node: so a chain of
/// `let`s or functions that doubles at each step stays as small as its text. The builder folds constants; the
/// caller must check that operands have the types that the operation needs.
class ExprBuilder {
public:
  explicit ExprBuilder(std::vector<Expr> &exprs) : exprs_(exprs) {}

  ExprId constant(ScalarType type, double value, support::SourceRange range);
  ExprId builtin(Builtin builtin, support::SourceRange range);
  ExprId param(int index, const Param &param, support::SourceRange range); ///< for an array: an element

  ExprId tableElement(int index, const Param &param, ExprId place, support::SourceRange range);

  /// Sets `problem` if constant operands have no representable result; the node is then the unfolded
  /// operation.
  ExprId apply(ExprOp op, ScalarType type, std::vector<ExprId> operands, support::SourceRange range,
               std::string &problem);

  const Expr &operator[](ExprId id) const { return exprs_[id]; }
  bool isConstant(ExprId id) const { return exprs_[id].op == ExprOp::Constant; }
  std::size_t size() const { return exprs_.size(); }

  /// Adds an operation as it is, or returns an existing node that equals it.
  ExprId add(Expr expr);

private:
  using Key = std::tuple<ExprOp, ScalarType, std::vector<ExprId>, double, bool, Builtin, int>;
  std::optional<ExprId> simplify(ExprOp op, const std::vector<ExprId> &operands) const;

  std::vector<Expr> &exprs_;
  std::map<Key, ExprId> known_;
};

/// Keeps only the nodes that `roots` reach, in their order, and renumbers the roots.
std::vector<Expr> compactExprs(const std::vector<Expr> &exprs, const std::vector<ExprId *> &roots);

/// The name that a node depends on. For an array's element this is the name that indexes it; for an array
/// over tokens it is the depth, the only name that belongs to tokens and nothing else. (Code that knows the
/// token also knows the KV head.) None: the node depends on no name.
std::optional<Builtin> nameRead(const Expr &expr, const std::vector<Param> &params);

/// Whether `root` reaches a node for which `predicate` holds. Linear in the arena.
template <typename Predicate>
bool reaches(const std::vector<Expr> &exprs, ExprId root, const Predicate &predicate) {
  std::vector<bool> wanted(root + 1, false);
  wanted[root] = true;
  // Operands come before their users, so one pass from the root down visits each node after all its users.
  for (ExprId id = root + 1; id-- > 0;) {
    if (!wanted[id])
      continue;
    if (predicate(exprs[id]))
      return true;
    for (ExprId operand : exprs[id].operands)
      wanted[operand] = true;
  }
  return false;
}

} // namespace deft::spec
