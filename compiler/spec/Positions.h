#pragma once

#include "compiler/spec/Variant.h"

#include <optional>
#include <vector>

namespace deft::spec {

/// Puts q_pos in the place of `pos` in what `query` reaches, and kv_pos in what `key` reaches, which it
/// renames; nothing else may reach it. Operations stay in their order, so that a spec which says `pos` is the
/// one that says the other name.
std::vector<Expr> withPositions(const std::vector<Expr> &exprs, const std::vector<ExprId *> &others,
                                std::optional<ExprId> &query, std::optional<ExprId> &key);

} // namespace deft::spec
