#include "compiler/spec/Positions.h"

#include "compiler/spec/ExprBuilder.h"

#include <utility>

namespace deft::spec {
namespace {

bool isPosition(const Expr &expr) { return expr.op == ExprOp::Builtin && expr.builtin == Builtin::Pos; }

/// Of each operation, whether it depends on `pos`.
std::vector<bool> dependOnPosition(const std::vector<Expr> &exprs) {
  std::vector<bool> depends(exprs.size(), false);
  for (std::size_t id = 0; id < exprs.size(); ++id) {
    bool one = isPosition(exprs[id]);
    for (const ExprId operand : exprs[id].operands)
      one |= depends[operand];
    depends[id] = one;
  }
  return depends;
}

std::vector<bool> reachedFrom(const std::vector<Expr> &exprs, const std::optional<ExprId> &root) {
  std::vector<bool> reached(exprs.size(), false);
  if (!root)
    return reached;
  reached[*root] = true;
  for (std::size_t id = *root + std::size_t{1}; id-- > 0;)
    if (reached[id])
      for (const ExprId operand : exprs[id].operands)
        reached[operand] = true;
  return reached;
}

} // namespace

std::vector<Expr> withPositions(const std::vector<Expr> &exprs, const std::vector<ExprId *> &others,
                                std::optional<ExprId> &query, std::optional<ExprId> &key) {
  const std::vector<bool> depends = dependOnPosition(exprs), inQuery = reachedFrom(exprs, query),
                          inKey = reachedFrom(exprs, key);
  std::vector<Expr> made;
  ExprBuilder builder(made);
  std::vector<ExprId> ofQuery(exprs.size()), ofKey(exprs.size());
  const auto copy = [&](const Expr &expr, Builtin position, const std::vector<ExprId> &renamed) {
    if (isPosition(expr))
      return builder.builtin(position, expr.range);
    Expr one = expr;
    for (ExprId &operand : one.operands)
      operand = renamed[operand];
    return builder.add(std::move(one));
  };
  for (std::size_t id = 0; id < exprs.size(); ++id) {
    if (!depends[id]) {
      ofQuery[id] = ofKey[id] = copy(exprs[id], Builtin::Pos, ofQuery);
      continue;
    }
    if (inQuery[id])
      ofQuery[id] = copy(exprs[id], Builtin::QPos, ofQuery);
    if (inKey[id])
      ofKey[id] = copy(exprs[id], Builtin::KvPos, ofKey);
  }
  for (ExprId *root : others)
    *root = ofQuery[*root];
  if (query)
    query = ofQuery[*query];
  if (key)
    key = ofKey[*key];
  return made;
}

} // namespace deft::spec
