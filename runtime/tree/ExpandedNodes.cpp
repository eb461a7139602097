#include "runtime/tree/ExpandedNodes.h"

#include "runtime/tree/TreeError.h"

#include <string>
#include <vector>

namespace deft::tree {

support::Result<void> checkExpanded(const KvTree &tree, std::span<const ExpandedNode> nodes) {
  std::vector<bool> isGiven(tree.nodes().size());
  for (const ExpandedNode &expanded : nodes) {
    const std::string name = "node " + std::to_string(expanded.node);
    if (!tree.isAlive(expanded.node))
      return wrong(name + " has expanded K and V, and the tree has no such node");
    const auto index = static_cast<std::size_t>(expanded.node);
    if (isGiven[index])
      return wrong(name + " has expanded K and V twice", "give each node once");
    isGiven[index] = true;
    const Node &node = tree.nodes()[index];
    if (expanded.tokens != node.tokens)
      return wrong(name + " has " + std::to_string(node.tokens) + " tokens, and its expanded K and V have " +
                       std::to_string(expanded.tokens),
                   "expand all of a node's tokens; fork cuts a node in two");
    if (expanded.location < 0 || expanded.location > KvTree::kMaxTokens - expanded.tokens)
      return wrong("location " + std::to_string(expanded.location) + " of the expanded " + name +
                   " is not between 0 and " + std::to_string(KvTree::kMaxTokens - expanded.tokens));
  }
  return {};
}

} // namespace deft::tree
