#include "runtime/plan/TreeView.h"

#include <algorithm>
#include <tuple>

namespace deft::plan {

namespace {

/// Steps through preorder as the tree has it.
class PlainWalk {
public:
  explicit PlainWalk(const tree::KvTree &tree) : tree_(tree), nodes_(tree.nodes().data()) {}

  int firstRoot() const { return tree_.firstRoot(); }
  int firstChild(int node) const { return nodes_[node].firstChild; }
  int nextSibling(int node) const { return nodes_[node].nextSibling; }

private:
  const tree::KvTree &tree_;
  const tree::Node *nodes_;
};

/// The same, but of siblings those that are marked come last.
class MarkedWalk {
public:
  MarkedWalk(const tree::KvTree &tree, const std::vector<char> &isLast)
      : tree_(tree), nodes_(tree.nodes()), isLast_(isLast) {}

  int firstRoot() const { return firstOf(tree_.firstRoot()); }
  int firstChild(int node) const { return firstOf(nodes_[node].firstChild); }
  int nextSibling(int node) const {
    if (const int same = skipTo(nodes_[node].nextSibling, isLast(node)); same >= 0 || isLast(node))
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
  if (isLast.empty())
    orderPlaces(tree, PlainWalk(tree));
  else
    orderPlaces(tree, MarkedWalk(tree, isLast));
  orderQueries(tree);
  cutSegments();
}

/// Fills `places` and turns cursor_ from counts into where each node's queries begin.
template <typename Walk> void TreeView::orderPlaces(const tree::KvTree &tree, const Walk &walk) {
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
  const tree::Node *const nodes = tree.nodes().data();
  bool mayBeUnsorted = false; // what is left of the last tree may say so wrongly
  for (std::size_t i = 0; i < count; ++i) {
    const tree::Query &query = tree.queries()[i];
    const int at = cursor_[query.node]++;
    const int place = placeOfNode[query.node], tokens = tree.seenTokens(query);
    callerIndex[at] = static_cast<int>(i);
    queryPlace[at] = place;
    seen[at] = tokens;
    queryPos[at] = nodes[query.node].position + tokens - 1;
    mayBeUnsorted |= at > 0 && queryPlace[at - 1] == place && seen[at - 1] > tokens;
  }
  if (!mayBeUnsorted)
    return;
  for (const Place &place : places)
    if (!std::is_sorted(seen.begin() + place.ownBegin, seen.begin() + place.ownEnd))
      sortOwn(place);
}

/// By (tokens seen, caller's index). The pairs differ, so the order needs no stable sort, which allocates.
void TreeView::sortOwn(const Place &place) {
  sorted_.clear();
  for (int i = place.ownBegin; i < place.ownEnd; ++i)
    sorted_.emplace_back(seen[i], callerIndex[i]);
  std::sort(sorted_.begin(), sorted_.end());
  for (int i = place.ownBegin; i < place.ownEnd; ++i) {
    std::tie(seen[i], callerIndex[i]) = sorted_[i - place.ownBegin];
    queryPos[i] = place.position + seen[i] - 1;
  }
}

/// A node is cut where one of its own queries ends; what is left is seen by the queries below it.
void TreeView::cutSegments() {
  segments.clear();
  leafPlaces.clear();
  int p = -1;
  for (Place &place : places) {
    ++p;
    if (place.subtreeEnd == p + 1 && place.ownBegin < place.ownEnd) {
      place.leaf = leafCount();
      leafPlaces.push_back(p);
    }
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
