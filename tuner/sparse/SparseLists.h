#pragma once

#include "compiler/spec/Variant.h"
#include "runtime/tree/KvTree.h"
#include "tuner/sparse/SparseMachine.h"

#include <vector>

namespace deft::sparse {

/// The lists on which a variant's sparse layers are tuned: for each of its budgets, 1 to 64 queries, with
/// powers of two first; without those whose caches would be too large.
std::vector<Lists> listsOf(const spec::Variant &variant);

/// Tokens of each query's path: a multiple of the budget, so that lists are as scattered as in long contexts;
/// fewer if the caches of many queries together would be large.
int pathTokens(const spec::Variant &variant, const Lists &lists);

/// A path for each query. Paths share nothing, so each query reads its own tokens.
support::Result<tree::KvTree> treeOf(const spec::Variant &variant, const Lists &lists);

} // namespace deft::sparse
