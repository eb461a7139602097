#pragma once

#include "runtime/tree/KvTree.h"

namespace deft::tree {

/// One change of a tree, as a value: workloads make them between steps, and copies of the tree repeat them.
/// Indices are assigned in a fixed order, so the same edits give the same tree.
struct TreeEdit {
  enum class Kind {
    AddNode, ///< adds a node of `value` tokens below `node` (-1: a root)
    Append,  ///< adds `value` tokens to the leaf `node`
    Split,   ///< splits `node` at position `value`
    Prune,   ///< removes `node` and its subtree
    Accept,  ///< accepts the path from the sequence `node` to the node `value`
  };

  Kind kind = Kind::AddNode;
  int node = -1;
  int value = 0;

  bool operator==(const TreeEdit &) const = default;
};

support::Result<void> apply(const TreeEdit &edit, KvTree &tree);

} // namespace deft::tree
