#pragma once

#include "compiler/spec/Variant.h"

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace deft::spec {

/// What folding an operation on constants gives: a value, or why there is none.
struct Folded {
  double value = 0;
  std::string problem; ///< empty: none
};

/// The value of `op` on constants of type `operandType`. i32 in exact arithmetic, f32 in double; a result
/// that does not fit its type is a problem.
Folded fold(ExprOp op, ScalarType operandType, const std::vector<double> &operands);

/// Builds the typed arena of a variant. Equal operations on equal operands are one node, so that a chain of
/// `let`s or functions that doubles at each step stays as small as it was written. Operands must have the
/// types that the operation needs; folding is the builder's, checking is the caller's.
class ExprBuilder {
public:
  explicit ExprBuilder(std::vector<Expr> &exprs) : exprs_(exprs) {}

  ExprId constant(ScalarType type, double value, support::SourceRange range);
  ExprId builtin(Builtin builtin, support::SourceRange range);
  ExprId param(int index, const Param &param, support::SourceRange range); ///< an element when it is an array

  ExprId tableElement(int index, const Param &param, ExprId place, support::SourceRange range);

  /// `problem` is set when constant operands have no representable result; the node is then the unfolded
  /// operation.
  ExprId apply(ExprOp op, ScalarType type, std::vector<ExprId> operands, support::SourceRange range,
               std::string &problem);

  const Expr &operator[](ExprId id) const { return exprs_[id]; }
  bool isConstant(ExprId id) const { return exprs_[id].op == ExprOp::Constant; }
  std::size_t size() const { return exprs_.size(); }

  /// An operation as it is, or the known one that equals it.
  ExprId add(Expr expr);

private:
  using Key = std::tuple<ExprOp, ScalarType, std::vector<ExprId>, double, bool, Builtin, int>;
  std::optional<ExprId> simplify(ExprOp op, const std::vector<ExprId> &operands) const;

  std::vector<Expr> &exprs_;
  std::map<Key, ExprId> known_;
};

/// Keeps the nodes that `roots` reach, in their order, and renames the roots.
std::vector<Expr> compactExprs(const std::vector<Expr> &exprs, const std::vector<ExprId *> &roots);

/// The name that a node reads; of an array's element the one that indexes it, and of a token's the depth,
/// which is of tokens and nothing else, too. (Where a token is known, so is the KV head.) None: it reads no
/// name.
std::optional<Builtin> nameRead(const Expr &expr, const std::vector<Param> &params);

/// Whether `root` reaches a node for which `predicate` holds. Linear in the arena.
template <typename Predicate>
bool reaches(const std::vector<Expr> &exprs, ExprId root, const Predicate &predicate) {
  std::vector<bool> wanted(root + 1, false);
  wanted[root] = true;
  // Operands come before their users, so one pass from the root down sees each node after all who use it.
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
