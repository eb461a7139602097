#include "runtime/tree/KvTree.h"

#include "runtime/tree/TreeError.h"

#include <algorithm>
#include <string>

/// The queries of a tree, and their order.
namespace deft::tree {

using support::Result;

Result<void> KvTree::checkQuery(std::size_t index, int node, std::optional<int> position) const {
  if (index >= static_cast<std::size_t>(kMaxQueries))
    return wrong("more than " + std::to_string(kMaxQueries) + " queries");
  const auto hangsOn = [&] {
    return "query " + std::to_string(index) + " hangs on node " + std::to_string(node);
  };
  if (node < 0 || node >= static_cast<int>(nodes_.size()))
    return wrong(hangsOn() + ", but there are " + std::to_string(nodes_.size()) + " nodes");
  if (!nodes_[node].isAlive)
    return wrong(hangsOn() + ", which was pruned");
  const int tokens = nodes_[node].tokens;
  if (position && (*position < 0 || *position > tokens))
    return wrong("position " + std::to_string(*position) + " of query " + std::to_string(index) +
                     " is outside node " + std::to_string(node) + ", which has " + std::to_string(tokens) +
                     " tokens",
                 "a position counts the node's own tokens that the query sees");
  return {};
}

Result<int> KvTree::addQuery(int node, std::optional<int> position) {
  const std::size_t index = queries_.size();
  if (auto checked = checkQuery(index, node, position); !checked)
    return checked.error();
  queries_.push_back({node, position.value_or(Query::kWhole)});
  ++links_[node].ownQueries;
  structureChanged();
  return static_cast<int>(index);
}

Result<void> KvTree::removeQuery(int query) {
  if (query < 0 || query >= static_cast<int>(queries_.size()))
    return wrong("there is no query " + std::to_string(query) + " to remove, only " +
                 std::to_string(queries_.size()) + " queries");
  --links_[queries_[query].node].ownQueries;
  queries_.erase(queries_.begin() + query);
  structureChanged();
  return {};
}

Result<void> KvTree::setQueries(std::span<const Query> queries) {
  if (std::equal(queries.begin(), queries.end(), queries_.begin(), queries_.end())) {
    ++generation_;
    return {};
  }
  for (std::size_t i = 0; i < queries.size(); ++i) {
    const auto position =
        queries[i].position == Query::kWhole ? std::nullopt : std::optional(queries[i].position);
    if (auto checked = checkQuery(i, queries[i].node, position); !checked)
      return checked;
  }
  clearQueries();
  queries_.assign(queries.begin(), queries.end());
  for (const Query &query : queries_)
    ++links_[query.node].ownQueries;
  return {};
}

void KvTree::clearQueries() {
  for (const Query &query : queries_)
    links_[query.node].ownQueries = 0;
  queries_.clear();
  structureChanged();
}

QueryOrder KvTree::queryOrder() const {
  QueryOrder order;
  order.ownBegin.assign(nodes_.size(), 0);
  order.ownEnd.assign(nodes_.size(), 0);
  order.subtreeEnd.assign(nodes_.size(), 0);

  int next = 0;
  for (int node = firstRoot_; node >= 0;) {
    order.ownBegin[node] = next;
    order.ownEnd[node] = next += links_[node].ownQueries;
    // When the walk goes up, every subtree that it leaves ends.
    const int after = nextInPreorder(node);
    const int stop = after < 0 ? -1 : nodes_[after].parent;
    for (int left = node; left != stop; left = nodes_[left].parent)
      order.subtreeEnd[left] = next;
    node = after;
  }

  order.callerIndex.resize(queries_.size());
  std::vector<int> fill = order.ownBegin;
  for (std::size_t i = 0; i < queries_.size(); ++i)
    order.callerIndex[fill[queries_[i].node]++] = static_cast<int>(i);
  const auto byPosition = [&](int a, int b) { return seenTokens(queries_[a]) < seenTokens(queries_[b]); };
  for (int node = firstRoot_; node >= 0; node = nextInPreorder(node))
    if (order.ownEnd[node] - order.ownBegin[node] > 1)
      std::stable_sort(order.callerIndex.begin() + order.ownBegin[node],
                       order.callerIndex.begin() + order.ownEnd[node], byPosition);
  return order;
}

} // namespace deft::tree
