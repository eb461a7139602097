#pragma once

#include "runtime/reference/Evaluate.h"
#include "runtime/tree/KvTree.h"

#include <vector>

/// The definition of the result, as slow and plain as it can be said: for each query, the tokens on its
/// path, a score each, softmax or sigmoid, and the weighted sum of the values. It knows no plan and no
/// tile, so nothing of what it checks is also what it uses.
namespace deft::reference {

/// A row: one query head of one query.
struct Row {
  std::vector<double> out; ///< head_dim values; 0 when no token is visible. `Plain`: in the output dtype
  double lse = 0;          ///< softmax: natural logarithm; -inf when no token is visible
};

/// The rows of one query (caller's index) for the query heads of one KV head, in their order. The tree
/// must carry the locations by which `inputs` lies in the cache.
std::vector<Row> evaluateGroup(const spec::Variant &variant, const tree::KvTree &tree,
                               const exec::Inputs &inputs, int query, int kvHead, Precision precision);

} // namespace deft::reference
