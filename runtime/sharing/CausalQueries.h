#pragma once

#include "runtime/tree/KvTree.h"

#include <vector>

namespace deft::sharing {

/// Adds the queries of a request's last `count` tokens, in their order. Each sees the request up to its own
/// token, and with a mask bound by `path` also later tokens: it belongs to the node on the path that has its
/// token. The last one sees its whole node, including later growth, so a request with one query has the same
/// query in every step.
///
/// Plans treat any number of such queries in one node as a single stretch
/// (plan::cutWhereQueriesEnd).
///
/// This is the only code that defines how new tokens see each other. `endNode` is the last node of the
/// request's path, which has `tokens` tokens. Queries of a request without tokens see nothing.
void addCausalQueries(const tree::KvTree &tree, int endNode, int tokens, int count,
                      std::vector<tree::Query> &queries);

} // namespace deft::sharing
