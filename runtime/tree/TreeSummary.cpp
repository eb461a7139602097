#include "runtime/tree/TreeSummary.h"

#include <algorithm>

namespace deft::tree {

TreeSummary summarize(const KvTree &tree) {
  TreeSummary summary;
  summary.nodes = static_cast<int>(tree.nodes().size());
  summary.queries = static_cast<int>(tree.queries().size());
  std::vector<int> seen(tree.nodes().size(), 0); // most tokens of each node that a query sees
  for (const Query &query : tree.queries()) {
    seen[query.node] = std::max(seen[query.node], query.position);
    summary.pathTokens += tree.pathTokens(query);
  }
  std::vector<bool> hasQueries(tree.nodes().size(), false); // in its subtree
  for (const Query &query : tree.queries())
    hasQueries[query.node] = true;
  for (std::size_t i = tree.nodes().size(); i-- > 0;) { // children before parents
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
