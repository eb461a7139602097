#pragma once

#include "runtime/tree/KvTree.h"

#include <vector>

namespace deft::sharing {

/// Adds the queries of a request's last `count` tokens, in their order. Each sees the request up to its own
/// token, and what a mask bound by `path` shows behind it: it ends inside the node of the path that has this
/// token. The last one sees its node whole, and goes on to when that grows; so a request with one query has
/// the same query from step to step.
///
/// Plans take such queries of one node for a single stretch (plan::cutWhereQueriesEnd), however many there
/// are.
///
/// The only place that knows how new tokens see each other. `endNode` is the one that the request's path of
/// `tokens` tokens ends with. A request without tokens has queries that see nothing.
void addCausalQueries(const tree::KvTree &tree, int endNode, int tokens, int count,
                      std::vector<tree::Query> &queries);

} // namespace deft::sharing
