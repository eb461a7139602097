#include "runtime/tree/KvTree.h"

#include <algorithm>
#include <string>

namespace deft::tree {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

Error wrong(std::string message, std::string hint = "") {
  return Error{ErrorCode::Diagnostics, std::move(message), std::move(hint)};
}

} // namespace

Result<int> KvTree::addNode(int parent, int tokens, int location) {
  const int index = static_cast<int>(nodes_.size());
  if (index >= kMaxNodes)
    return wrong("more than " + std::to_string(kMaxNodes) + " nodes");
  if (parent < -1 || parent >= index)
    return wrong("parent " + std::to_string(parent) + " of node " + std::to_string(index) +
                     " is not an earlier node",
                 "-1 makes a root; a parent stands before its children");
  if (tokens < 0 || tokens > kMaxTokens)
    return wrong(std::to_string(tokens) + " tokens in node " + std::to_string(index) + ", must be 0 to " +
                 std::to_string(kMaxTokens));
  Node node{parent, tokens, 0};
  if (parent >= 0) {
    const Node &above = nodes_[parent];
    node.depth = above.depth + 1;
    node.position = above.position + above.tokens;
  }
  if (node.position > kMaxTokens - tokens)
    return wrong("the path to node " + std::to_string(index) + " is longer than " +
                 std::to_string(kMaxTokens) + " tokens");
  nodes_.push_back(node);
  if (auto placed = place(index, location); !placed) {
    nodes_.pop_back();
    return placed.error();
  }
  ++generation_;
  return index;
}

Result<int> KvTree::addQuery(int node, std::optional<int> position) {
  const int index = static_cast<int>(queries_.size());
  if (index >= kMaxQueries)
    return wrong("more than " + std::to_string(kMaxQueries) + " queries");
  if (node < 0 || node >= static_cast<int>(nodes_.size()))
    return wrong("query " + std::to_string(index) + " hangs on node " + std::to_string(node) +
                 ", but there are " + std::to_string(nodes_.size()) + " nodes");
  const int tokens = nodes_[node].tokens;
  if (position && (*position < 0 || *position > tokens))
    return wrong("position " + std::to_string(*position) + " of query " + std::to_string(index) +
                     " is outside node " + std::to_string(node) + ", which has " + std::to_string(tokens) +
                     " tokens",
                 "a position counts the node's own tokens that the query sees");
  queries_.push_back({node, position.value_or(tokens)});
  ++generation_;
  return index;
}

Result<void> KvTree::place(int node, int location) {
  if (node < 0 || node >= static_cast<int>(nodes_.size()))
    return wrong("there is no node " + std::to_string(node) + " to place, only " +
                 std::to_string(nodes_.size()) + " nodes");
  if (location < 0 || location > kMaxTokens - nodes_[node].tokens)
    return wrong("location " + std::to_string(location) + " of node " + std::to_string(node) +
                 " is outside the table, which has at most " + std::to_string(kMaxTokens) + " tokens");
  nodes_[node].location = location;
  ++generation_;
  return {};
}

void KvTree::clearQueries() {
  queries_.clear();
  ++generation_;
}

QueryOrder KvTree::queryOrder() const {
  const std::size_t nodeCount = nodes_.size();
  QueryOrder order;
  order.ownBegin.assign(nodeCount, 0);
  order.ownEnd.assign(nodeCount, 0);
  order.subtreeEnd.assign(nodeCount, 0);

  std::vector<int> own(nodeCount, 0);
  for (const Query &query : queries_)
    ++own[query.node];
  // Parents come before their children, so one sweep upwards sums the subtrees and one downwards hands
  // every node its interval: no recursion, whatever the depth.
  std::vector<int> below = own;
  for (std::size_t i = nodeCount; i-- > 0;)
    if (nodes_[i].parent >= 0)
      below[nodes_[i].parent] += below[i];
  std::vector<int> next(nodeCount, 0); // where the next child of a node begins
  int nextRoot = 0;
  for (std::size_t i = 0; i < nodeCount; ++i) {
    int &cursor = nodes_[i].parent < 0 ? nextRoot : next[nodes_[i].parent];
    order.ownBegin[i] = cursor;
    order.ownEnd[i] = next[i] = cursor + own[i];
    order.subtreeEnd[i] = cursor += below[i];
  }

  order.callerIndex.resize(queries_.size());
  std::vector<int> fill = order.ownBegin;
  for (std::size_t i = 0; i < queries_.size(); ++i)
    order.callerIndex[fill[queries_[i].node]++] = static_cast<int>(i);
  const auto byPosition = [&](int a, int b) { return queries_[a].position < queries_[b].position; };
  for (std::size_t i = 0; i < nodeCount; ++i)
    if (own[i] > 1)
      std::stable_sort(order.callerIndex.begin() + order.ownBegin[i],
                       order.callerIndex.begin() + order.ownEnd[i], byPosition);
  return order;
}

} // namespace deft::tree
