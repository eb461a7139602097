#pragma once

#include "compiler/support/Result.h"
#include "runtime/tree/KvTree.h"

#include <span>

namespace deft::tree {

/// A node over a latent cache whose K and V also exist in expanded form, in a second cache.
struct ExpandedNode {
  int node = 0;
  int tokens = 0;   ///< as many as the node has
  int location = 0; ///< of the first token in the second cache; the others follow it

  bool operator==(const ExpandedNode &) const = default;
};

/// Checks that the nodes are living nodes of the tree, each listed once, with all of their tokens in the
/// second cache.
support::Result<void> checkExpanded(const KvTree &tree, std::span<const ExpandedNode> nodes);

} // namespace deft::tree
