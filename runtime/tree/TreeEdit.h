#pragma once

#include "runtime/tree/KvTree.h"

namespace deft::tree {

/// One change of a tree, as a value: what a workload does between two steps, and what a tree elsewhere
/// repeats to follow it. Indices are given out in a fixed order, so the same edits make the same tree.
struct TreeEdit {
  enum class Kind {
    AddNode, ///< below `node` (-1: a root), of `value` tokens
    Append,  ///< `value` tokens to the leaf `node`
    Split,   ///< `node` at position `value`
    Prune,   ///< `node` and all below it
    Accept,  ///< below the sequence `node`, the path to the node `value`
  };

  Kind kind = Kind::AddNode;
  int node = -1;
  int value = 0;

  bool operator==(const TreeEdit &) const = default;
};

support::Result<void> apply(const TreeEdit &edit, KvTree &tree);

} // namespace deft::tree
