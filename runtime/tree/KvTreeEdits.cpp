#include "runtime/tree/KvTree.h"

#include "runtime/tree/TreeError.h"

#include <algorithm>
#include <string>

/// The edits that change the structure of a tree: split, join, prune, accept.
namespace deft::tree {

using support::Result;

Result<int> KvTree::split(int node, int position, Depths depths) {
  if (auto alive = checkAlive(node, "split"); !alive)
    return alive.error();
  if (position <= 0 || position >= nodes_[node].tokens)
    return wrong("cannot split node " + std::to_string(node) + " of " + std::to_string(nodes_[node].tokens) +
                 " tokens at " + std::to_string(position));
  if (aliveNodes() >= kMaxNodes)
    return wrong("more than " + std::to_string(kMaxNodes) + " nodes");

  const int upper = takeIndex();
  replaceInSiblings(node, upper);
  Node &lower = nodes_[node];
  Node &above = nodes_[upper];
  above.tokens = position;
  above.location = lower.location;
  above.depth = lower.depth;
  above.position = lower.position;
  above.firstChild = links_[upper].lastChild = node;
  lower.parent = upper;
  lower.nextSibling = links_[node].previousSibling = -1;
  lower.tokens -= position;
  if (lower.location != kNotPlaced)
    lower.location += position;
  lower.position += position;
  if (depths == Depths::Now)
    addToDepths(node, 1);

  if (links_[node].ownQueries > 0)
    for (Query &query : queries_) {
      if (query.node != node || query.position == Query::kWhole)
        continue;
      if (query.position > position) {
        query.position -= position;
        continue;
      }
      query.node = upper;
      --links_[node].ownQueries;
      ++links_[upper].ownQueries;
    }
  structureChanged();
  return upper;
}

Result<void> KvTree::join(int node, Depths depths) {
  if (auto alive = checkAlive(node, "join to its child"); !alive)
    return alive;
  const int child = nodes_[node].firstChild;
  if (child < 0 || nodes_[child].nextSibling >= 0)
    return wrong("node " + std::to_string(node) + " has " + (child < 0 ? "no child" : "several children") +
                 ", only one can be joined to it");
  if (links_[node].ownQueries > 0)
    return wrong("node " + std::to_string(node) + " has " + std::to_string(links_[node].ownQueries) +
                 " queries, which end before its child");
  const Node &above = nodes_[node];
  Node &below = nodes_[child];
  const bool arePlaced = above.location != kNotPlaced && below.location != kNotPlaced;
  if (arePlaced ? below.location != above.location + above.tokens : below.location != above.location)
    return wrong("node " + std::to_string(child) + " lies at " + std::to_string(below.location) +
                     ", the node above it ends at " + std::to_string(above.location + above.tokens),
                 "place one of them");

  below.tokens += above.tokens;
  below.location = above.location;
  below.position = above.position;
  if (links_[child].ownQueries > 0)
    for (Query &query : queries_)
      if (query.node == child && query.position != Query::kWhole)
        query.position += above.tokens;
  replaceInSiblings(node, child);
  Node dead;
  dead.isAlive = false;
  nodes_[node] = dead;
  free_.push_back(node);
  if (depths == Depths::Now)
    addToDepths(child, -1);
  structureChanged();
  return {};
}

void KvTree::countDepths() {
  for (int node = firstRoot_; node >= 0; node = nextInPreorder(node)) {
    const int parent = nodes_[node].parent;
    nodes_[node].depth = parent < 0 ? 0 : nodes_[parent].depth + 1;
  }
}

void KvTree::addToDepths(int subtree, int more) {
  const int end = nextAfterSubtree(subtree);
  for (int node = subtree; node != end; node = nextInPreorder(node))
    nodes_[node].depth += more;
}

Result<void> KvTree::prune(int node) {
  if (auto alive = checkAlive(node, "prune"); !alive)
    return alive;
  unlink(node);
  if (removeSubtree(node) > 0)
    dropQueriesOfDead();
  structureChanged();
  return {};
}

Result<int> KvTree::checkAccept(int sequence, int last) const {
  for (int node : {sequence, last})
    if (auto alive = checkAlive(node, "accept"); !alive)
      return alive.error();
  int tokens = 0; // at most those of a path
  for (int node = last; node != sequence; node = nodes_[node].parent) {
    if (node < 0)
      return wrong("node " + std::to_string(last) + " is not below node " + std::to_string(sequence));
    tokens += nodes_[node].tokens;
  }
  return tokens;
}

Result<std::vector<Stretch>> KvTree::accept(int sequence, int last) {
  const auto checked = checkAccept(sequence, last);
  if (!checked)
    return checked.error();
  const int tokens = *checked;
  if (tokens > kMaxTokens - nodes_[sequence].tokens - nodes_[sequence].location)
    return wrong("with " + std::to_string(tokens) + " accepted tokens node " + std::to_string(sequence) +
                 " goes beyond the table, which has at most " + std::to_string(kMaxTokens) + " tokens");
  std::vector<Stretch> accepted;
  for (int node = last; node != sequence; node = nodes_[node].parent)
    accepted.push_back({nodes_[node].location, nodes_[node].tokens});
  std::reverse(accepted.begin(), accepted.end());

  int deadQueries = 0;
  while (nodes_[sequence].firstChild >= 0) {
    const int child = nodes_[sequence].firstChild;
    unlink(child);
    deadQueries += removeSubtree(child);
  }
  if (deadQueries > 0)
    dropQueriesOfDead();
  nodes_[sequence].tokens += tokens;
  tokens_ += tokens;
  structureChanged();
  return accepted;
}

void KvTree::clear() {
  nodes_.clear();
  links_.clear();
  free_.clear();
  queries_.clear();
  tokens_ = 0;
  firstRoot_ = lastRoot_ = -1;
  structureChanged();
}

/// Kills an unlinked subtree. Its links work until its indices are reused, but no living node leads to them.
/// Returns the number of queries that it had.
int KvTree::removeSubtree(int node) {
  nodes_[node].parent = nodes_[node].nextSibling = -1; // so the walk ends with the subtree
  const std::size_t firstDead = free_.size();
  int queries = 0;
  for (int dead = node; dead >= 0; dead = nextInPreorder(dead)) {
    tokens_ -= nodes_[dead].tokens;
    queries += links_[dead].ownQueries;
    free_.push_back(dead);
  }
  for (std::size_t i = firstDead; i < free_.size(); ++i) {
    Node dead;
    dead.isAlive = false;
    nodes_[free_[i]] = dead;
  }
  // The first node of the subtree is the first to be reused.
  std::reverse(free_.begin() + static_cast<std::ptrdiff_t>(firstDead), free_.end());
  return queries;
}

void KvTree::dropQueriesOfDead() {
  std::erase_if(queries_, [&](const Query &query) { return !nodes_[query.node].isAlive; });
}

} // namespace deft::tree
