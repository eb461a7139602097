#include "runtime/sharing/CausalQueries.h"

#include <cstddef>

namespace deft::sharing {

void addCausalQueries(const tree::KvTree &tree, int endNode, int tokens, int count,
                      std::vector<tree::Query> &queries) {
  if (count <= 1) {
    if (count == 1)
      queries.push_back({endNode, tree::Query::kWhole});
    return;
  }
  const std::size_t begin = queries.size();
  queries.resize(begin + static_cast<std::size_t>(count), {endNode, tree::Query::kWhole});
  const tree::Node *const nodes = tree.nodes().data();
  int node = endNode;
  for (int back = 1; back < count; ++back) {
    const int seen = tokens - back;
    while (seen <= nodes[node].position)
      node = nodes[node].parent;
    queries[begin + static_cast<std::size_t>(count - 1 - back)] = {node, seen - nodes[node].position};
  }
}

} // namespace deft::sharing
