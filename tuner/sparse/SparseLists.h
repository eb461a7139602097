#pragma once

#include "compiler/spec/Variant.h"
#include "runtime/tree/KvTree.h"
#include "tuner/sparse/SparseMachine.h"

#include <vector>

namespace deft::sparse {

/// The lists that a variant's sparse layers are tuned on: of each of its budgets, for 1 to 64 queries, the
/// powers of two first; those whose caches are not too large to be made for it.
std::vector<Lists> listsOf(const spec::Variant &variant);

/// Tokens of each query's path: some times the budget, so that lists lie as apart as those of long contexts
/// do, and less where many queries' caches together would be large.
int pathTokens(const spec::Variant &variant, const Lists &lists);

/// A path for each query, which shares nothing with the others: what they read is all their own.
support::Result<tree::KvTree> treeOf(const spec::Variant &variant, const Lists &lists);

} // namespace deft::sparse
