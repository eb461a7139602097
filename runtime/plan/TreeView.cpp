#include "runtime/plan/TreeView.h"

#include <algorithm>
#include <tuple>

namespace deft::plan {

namespace {

/// Steps through preorder; of siblings, those that are marked come last.
class Walk {
public:
  Walk(const tree::KvTree &tree, const std::vector<char> &isLast)
      : tree_(tree), nodes_(tree.nodes()), isLast_(isLast) {}

  int firstRoot() const { return firstOf(tree_.firstRoot()); }
  int firstChild(int node) const { return firstOf(nodes_[node].firstChild); }
  int nextSibling(int node) const {
    const int next = nodes_[node].nextSibling;
    if (isLast_.empty())
      return next;
    if (const int same = skipTo(next, isLast(node)); same >= 0 || isLast(node))
      return same;
    const int parent = nodes_[node].parent;
    return skipTo(parent < 0 ? tree_.firstRoot() : nodes_[parent].firstChild, true);
  }

private:
  bool isLast(int node) const { return isLast_[static_cast<std::size_t>(node)] != 0; }
  int skipTo(int node, bool marked) const {
    while (node >= 0 && isLast(node) != marked)
      node = nodes_[node].nextSibling;
    return node;
  }
  int firstOf(int node) const {
    if (isLast_.empty())
      return node;
    const int unmarked = skipTo(node, false);
    return unmarked >= 0 ? unmarked : node;
  }

  const tree::KvTree &tree_;
  const std::vector<tree::Node> &nodes_;
  const std::vector<char> &isLast_;
};

} // namespace

void TreeView::build(const tree::KvTree &tree, const std::vector<char> &isLast) {
  cursor_.assign(tree.nodes().size(), 0);
  for (const tree::Query &query : tree.queries())
    ++cursor_[query.node];
  orderPlaces(tree, isLast);
  orderQueries(tree);
  cutSegments();
}

/// Fills `places` and turns cursor_ from counts into where each node's queries begin.
void TreeView::orderPlaces(const tree::KvTree &tree, const std::vector<char> &isLast) {
  const Walk walk(tree, isLast);
  places.resize(static_cast<std::size_t>(tree.aliveNodes()));
  placeOfNode.assign(tree.nodes().size(), -1);
  int count = 0, queries = 0;
  int parent = -1;
  int node = walk.firstRoot();
  while (node >= 0) {
    const tree::Node &facts = tree.nodes()[node];
    const int place = count++;
    placeOfNode[node] = place;
    const int own = cursor_[node];
    cursor_[node] = queries;
    places[place] = Place(node, parent, 0, facts.tokens, facts.location, facts.position, facts.depth, queries,
                          queries + own, 0, 0, 0, -1);
    queries += own;
    if (facts.firstChild >= 0) {
      parent = place;
      node = walk.firstChild(node);
      continue;
    }
    // Up from the leaf, closing what ends with it, to the next node that has a sibling left.
    for (int closed = place; closed >= 0; closed = parent) {
      places[closed].subtreeEnd = count;
      places[closed].readersEnd = queries;
      parent = places[closed].parent;
      node = walk.nextSibling(places[closed].node);
      if (node >= 0)
        break;
    }
  }
}

void TreeView::orderQueries(const tree::KvTree &tree) {
  const std::size_t count = tree.queries().size();
  for (std::vector<int> *values : {&callerIndex, &queryPlace, &seen, &queryPos})
    values->resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const tree::Query &query = tree.queries()[i];
    const int at = cursor_[query.node]++;
    callerIndex[at] = static_cast<int>(i);
    queryPlace[at] = placeOfNode[query.node];
    seen[at] = tree.seenTokens(query);
  }
  for (const Place &place : places)
    if (place.ownEnd - place.ownBegin > 1 &&
        !std::is_sorted(seen.begin() + place.ownBegin, seen.begin() + place.ownEnd))
      sortOwn(place);
  for (std::size_t i = 0; i < count; ++i)
    queryPos[i] = places[queryPlace[i]].position + seen[i] - 1;
}

/// By (tokens seen, caller's index). The pairs differ, so the order needs no stable sort, which allocates.
void TreeView::sortOwn(const Place &place) {
  sorted_.clear();
  for (int i = place.ownBegin; i < place.ownEnd; ++i)
    sorted_.emplace_back(seen[i], callerIndex[i]);
  std::sort(sorted_.begin(), sorted_.end());
  for (int i = place.ownBegin; i < place.ownEnd; ++i)
    std::tie(seen[i], callerIndex[i]) = sorted_[i - place.ownBegin];
}

/// A node is cut where one of its own queries ends; what is left is seen by the queries below it.
void TreeView::cutSegments() {
  segments.clear();
  leafCount_ = 0;
  int p = -1;
  for (Place &place : places) {
    ++p;
    if (place.subtreeEnd == p + 1 && place.ownBegin < place.ownEnd)
      place.leaf = leafCount_++;
    place.segmentBegin = static_cast<int>(segments.size());
    int done = 0;
    for (int i = place.ownBegin; i < place.ownEnd; ++i)
      if (seen[i] > done) {
        segments.emplace_back(p, done, seen[i] - done, i, place.readersEnd);
        done = seen[i];
      }
    if (place.ownEnd < place.readersEnd && done < place.tokens)
      segments.emplace_back(p, done, place.tokens - done, place.ownEnd, place.readersEnd);
    place.segmentEnd = static_cast<int>(segments.size());
  }
}

} // namespace deft::plan
