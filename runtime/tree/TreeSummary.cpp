#include "runtime/tree/TreeSummary.h"

#include <algorithm>

namespace deft::tree {

TreeSummary summarize(const KvTree &tree) {
  TreeSummary summary;
  summary.nodes = tree.aliveNodes();
  summary.queries = static_cast<int>(tree.queries().size());
  std::vector<int> seen(tree.nodes().size(), 0); // for each node, the most tokens that a query sees
  for (const Query &query : tree.queries()) {
    seen[query.node] = std::max(seen[query.node], tree.seenTokens(query));
    summary.pathTokens += tree.pathTokens(query);
  }
  std::vector<bool> hasQueries(tree.nodes().size(), false); // in its subtree
  for (const Query &query : tree.queries())
    hasQueries[query.node] = true;
  std::vector<int> nodes;
  for (int node = tree.firstRoot(); node >= 0; node = tree.nextInPreorder(node))
    nodes.push_back(node);
  for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) { // children before parents
    const int i = *it;
    const Node &node = tree.nodes()[i];
    if (hasQueries[i] && node.parent >= 0) {
      hasQueries[node.parent] = true;
      seen[node.parent] = tree.nodes()[node.parent].tokens;
    }
    summary.roots += node.parent < 0;
    summary.levels = std::max(summary.levels, node.depth + 1);
    summary.tokens += node.tokens;
    summary.readTokens += seen[i];
  }
  return summary;
}

} // namespace deft::tree
