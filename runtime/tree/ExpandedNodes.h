#pragma once

#include "compiler/support/Result.h"
#include "runtime/tree/KvTree.h"

#include <span>

namespace deft::tree {

/// A node of a tree over a latent cache whose K and V exist in expanded form as well, in another cache.
struct ExpandedNode {
  int node = 0;
  int tokens = 0;   ///< as many as the node has
  int location = 0; ///< of the first one in the other cache; the others follow it

  bool operator==(const ExpandedNode &) const = default;
};

/// Whether the nodes are living ones of the tree, each once, with as many tokens as they have in the other
/// cache.
support::Result<void> checkExpanded(const KvTree &tree, std::span<const ExpandedNode> nodes);

} // namespace deft::tree
