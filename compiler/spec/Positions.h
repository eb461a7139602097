#pragma once

#include "compiler/spec/Variant.h"

#include <optional>
#include <vector>

namespace deft::spec {

/// Replaces `pos` by q_pos in the expression of `query`, and by kv_pos in that of `key`, and renumbers these
/// roots; no other root may reach `pos`. Operations keep their order, so a spec with `pos` gives the same
/// expressions as one with the other name.
std::vector<Expr> withPositions(const std::vector<Expr> &exprs, const std::vector<ExprId *> &others,
                                std::optional<ExprId> &query, std::optional<ExprId> &key);

} // namespace deft::spec
