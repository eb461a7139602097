#include "runtime/tree/KvTree.h"

#include "runtime/tree/TreeError.h"

#include <algorithm>
#include <string>
#include <utility>

namespace deft::tree {

using support::Result;

Result<int> KvTree::addNode(int parent, int tokens, int location) {
  const int index = free_.empty() ? static_cast<int>(nodes_.size()) : free_.back();
  if (index >= kMaxNodes)
    return wrong("more than " + std::to_string(kMaxNodes) + " nodes");
  if (parent < -1 || parent >= static_cast<int>(nodes_.size()))
    return wrong("parent " + std::to_string(parent) + " of node " + std::to_string(index) +
                     " is not an earlier node",
                 "-1 makes a root; a parent comes before its children");
  if (parent >= 0 && !nodes_[parent].isAlive)
    return wrong("parent " + std::to_string(parent) + " of node " + std::to_string(index) + " was pruned");
  if (tokens < 0 || tokens > kMaxTokens)
    return wrong(std::to_string(tokens) + " tokens in node " + std::to_string(index) + ", must be 0 to " +
                 std::to_string(kMaxTokens));
  Node node{.parent = parent, .tokens = tokens, .location = location};
  if (parent >= 0) {
    const Node &above = nodes_[parent];
    node.depth = above.depth + 1;
    node.position = above.position + above.tokens;
  }
  if (node.position > kMaxTokens - tokens)
    return wrong("the path to node " + std::to_string(index) + " is longer than " +
                 std::to_string(kMaxTokens) + " tokens");
  if ((location < 0 && location != kNotPlaced) || location > kMaxTokens - tokens)
    return wrong("location " + std::to_string(location) + " of node " + std::to_string(index) +
                 " is outside the table, which has at most " + std::to_string(kMaxTokens) + " tokens");
  takeIndex();
  nodes_[index] = node;
  linkLast(index, parent);
  tokens_ += tokens;
  structureChanged();
  return index;
}

Result<void> KvTree::checkAppend(int leaf, int tokens) const {
  if (auto alive = checkAlive(leaf, "append to"); !alive)
    return alive;
  const Node &node = nodes_[leaf];
  if (node.firstChild >= 0)
    return wrong("node " + std::to_string(leaf) + " has children, only leaves grow",
                 "fork a branch below it");
  if (tokens < 0)
    return wrong(std::to_string(tokens) + " tokens to append to node " + std::to_string(leaf) +
                 ", must not be negative");
  if (tokens > kMaxTokens - node.tokens - node.position)
    return wrong("with " + std::to_string(tokens) + " more tokens the path to node " + std::to_string(leaf) +
                 " is longer than " + std::to_string(kMaxTokens) + " tokens");
  return {};
}

Result<void> KvTree::append(int leaf, int tokens) {
  // Checks first only whether there is an error, then which one: a step appends to every request.
  const bool isRight =
      isAlive(leaf) && nodes_[leaf].firstChild < 0 && tokens >= 0 &&
      tokens <= kMaxTokens - nodes_[leaf].tokens - std::max(nodes_[leaf].position, nodes_[leaf].location);
  if (!isRight) [[unlikely]] {
    if (auto checked = checkAppend(leaf, tokens); !checked)
      return checked;
    return wrong("with " + std::to_string(tokens) + " more tokens node " + std::to_string(leaf) +
                 " goes beyond the table, which has at most " + std::to_string(kMaxTokens) + " tokens");
  }
  nodes_[leaf].tokens += tokens;
  tokens_ += tokens;
  ++generation_;
  return {};
}

Result<int> KvTree::fork(int node, std::optional<int> position) {
  if (auto alive = checkAlive(node, "fork"); !alive)
    return alive.error();
  const int tokens = nodes_[node].tokens;
  if (position && (*position < 0 || *position > tokens))
    return wrong("position " + std::to_string(*position) + " is outside node " + std::to_string(node) +
                 ", which has " + std::to_string(tokens) + " tokens");
  if (!position || *position == tokens)
    return addNode(node, 0, kNotPlaced);
  if (*position == 0)
    return addNode(nodes_[node].parent, 0, kNotPlaced);
  if (aliveNodes() + 2 > kMaxNodes)
    return wrong("more than " + std::to_string(kMaxNodes) + " nodes");
  const auto upper = split(node, *position);
  if (!upper)
    return upper.error();
  return addNode(*upper, 0, kNotPlaced);
}

Result<void> KvTree::place(int node, int location) {
  if (auto alive = checkAlive(node, "place"); !alive)
    return alive;
  if (location < 0 || location > kMaxTokens - nodes_[node].tokens)
    return wrong("location " + std::to_string(location) + " of node " + std::to_string(node) +
                 " is outside the table, which has at most " + std::to_string(kMaxTokens) + " tokens");
  nodes_[node].location = location;
  structureChanged();
  return {};
}

void KvTree::forgetPlaces() {
  for (Node &node : nodes_)
    if (node.isAlive)
      node.location = kNotPlaced;
  structureChanged();
}

void KvTree::setRanks(std::optional<Ranks> ranks) {
  if (ranks && ranks_ && *ranks == *ranks_)
    return;
  if (!ranks && !ranks_)
    return;
  ranks_ = ranks ? std::make_shared<const Ranks>(std::move(*ranks)) : nullptr;
  structureChanged();
}

Result<void> KvTree::checkAlive(int node, const char *what) const {
  const int count = static_cast<int>(nodes_.size());
  if (node < 0 || node >= count)
    return wrong("there is no node " + std::to_string(node) + " to " + what + ", only " +
                 std::to_string(count) + " nodes");
  if (!nodes_[node].isAlive)
    return wrong("node " + std::to_string(node) + " to " + what + " was pruned");
  return {};
}

/// The index of a new node; the caller has checked that there is room.
int KvTree::takeIndex() {
  if (free_.empty()) {
    nodes_.emplace_back();
    links_.emplace_back();
    return static_cast<int>(nodes_.size()) - 1;
  }
  const int index = free_.back();
  free_.pop_back();
  nodes_[index] = {};
  links_[index] = {};
  return index;
}

void KvTree::linkLast(int node, int parent) {
  int &first = parent < 0 ? firstRoot_ : nodes_[parent].firstChild;
  int &last = parent < 0 ? lastRoot_ : links_[parent].lastChild;
  links_[node].previousSibling = last;
  (last < 0 ? first : nodes_[last].nextSibling) = node;
  last = node;
}

void KvTree::unlink(int node) {
  const int parent = nodes_[node].parent;
  const int before = links_[node].previousSibling;
  const int after = nodes_[node].nextSibling;
  (before >= 0 ? nodes_[before].nextSibling : parent < 0 ? firstRoot_ : nodes_[parent].firstChild) = after;
  (after >= 0 ? links_[after].previousSibling : parent >= 0 ? links_[parent].lastChild : lastRoot_) = before;
}

/// Puts `by` in the place of `old` among its siblings.
void KvTree::replaceInSiblings(int old, int by) {
  const int parent = nodes_[old].parent;
  const int before = links_[old].previousSibling;
  const int after = nodes_[old].nextSibling;
  nodes_[by].parent = parent;
  nodes_[by].nextSibling = after;
  links_[by].previousSibling = before;
  (before >= 0 ? nodes_[before].nextSibling : parent < 0 ? firstRoot_ : nodes_[parent].firstChild) = by;
  (after >= 0 ? links_[after].previousSibling : parent >= 0 ? links_[parent].lastChild : lastRoot_) = by;
}

void KvTree::structureChanged() {
  ++generation_;
  ++structureGeneration_;
}

} // namespace deft::tree
