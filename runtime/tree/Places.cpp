#include "runtime/tree/Places.h"

#include "runtime/tree/TreeError.h"

#include <algorithm>
#include <string>
#include <tuple>

namespace deft::tree {

namespace {

/// "node 3 has slots 16 to 31"
std::string slotsOf(const KvTree &tree, int index) {
  const Node &node = tree.nodes()[static_cast<std::size_t>(index)];
  return "node " + std::to_string(index) + " has slots " + std::to_string(node.location) + " to " +
         std::to_string(std::int64_t{node.location} + node.tokens - 1);
}

} // namespace

support::Result<void> checkPlaced(const KvTree &tree) {
  const std::vector<Node> &nodes = tree.nodes();
  const auto lacksPlace = [](const Node &node) {
    return node.location == KvTree::kNotPlaced && node.isAlive && node.tokens > 0;
  };
  const auto found = std::find_if(nodes.begin(), nodes.end(), lacksPlace);
  if (found == nodes.end())
    return {};
  return wrong("node " + std::to_string(found - nodes.begin()) + " of " + std::to_string(found->tokens) +
                   " tokens is not placed: it has no location in the cache",
               "give its location when you add it, or place it");
}

support::Result<void> checkPlaces(const KvTree &tree) {
  const std::vector<Node> &nodes = tree.nodes();
  std::vector<int> placed;
  for (int i = 0; i < static_cast<int>(nodes.size()); ++i)
    if (nodes[static_cast<std::size_t>(i)].isAlive && nodes[static_cast<std::size_t>(i)].tokens > 0)
      placed.push_back(i);
  const auto locationOf = [&](int i) { return nodes[static_cast<std::size_t>(i)].location; };
  // Nodes of different ranks lie in different caches.
  const Ranks *const ranks = tree.ranks();
  const bool isByNode = ranks && ranks->layout() == RankLayout::ByNode;
  const auto holderOf = [&](int i) { return isByNode ? ranks->holderOf(i, 0) : 0; };
  std::sort(placed.begin(), placed.end(), [&](int a, int b) {
    return std::tuple(holderOf(a), locationOf(a), a) < std::tuple(holderOf(b), locationOf(b), b);
  });
  // Until two nodes overlap, each ends before the next begins, so comparing neighbours is enough.
  for (std::size_t i = 1; i < placed.size(); ++i) {
    const Node &before = nodes[static_cast<std::size_t>(placed[i - 1])];
    if (holderOf(placed[i - 1]) == holderOf(placed[i]) &&
        std::int64_t{before.location} + before.tokens > locationOf(placed[i]))
      return wrong(slotsOf(tree, placed[i - 1]) + ", " + slotsOf(tree, placed[i]) + ": they share some",
                   "give each node its own location, or let a pool assign the slots");
  }
  return {};
}

} // namespace deft::tree
