#include "runtime/plan/TreeView.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace deft::plan {

/// Where the next values go. Plain pointers: nothing is read again because something else was written.
struct TreeView::Cursor {
  const Link *links;
  int *callerIndex, *queryPos, *shared;
  Segment *segments;
  Plan::Leaf *leaves;
  int query = 0, segment = 0, leaf = 0;
  int common = 0; ///< tokens of the last query's path that the next one sees, too
  std::int64_t readTokens = 0, pathTokens = 0;
  int levels = 0;
  int segmentRoom, leafRoom;

  void addQuery(int caller, int tokens) {
    callerIndex[query] = caller;
    queryPos[query] = tokens - 1;
    shared[query++] = common;
    common = tokens;
    pathTokens += tokens;
  }
  /// All of a node's queries are there; before, `before` tokens were common.
  void endOwn(int before, int depth) {
    readTokens += common - before;
    levels = std::max(levels, depth + 1);
  }
};

void TreeView::build(const tree::KvTree &tree) {
  chainQueries(tree);
  places.resize(static_cast<std::size_t>(tree.aliveNodes()));
  callerIndex.resize(tree.queries().size());
  queryPos.resize(tree.queries().size());
  shared.resize(tree.queries().size() + 1);
  shared.back() = 0;
  walkTree(tree);
}

void TreeView::chainQueries(const tree::KvTree &tree) {
  firstQuery_.assign(tree.nodes().size(), -1);
  links_.resize(tree.queries().size());
  const tree::Query *const queries = tree.queries().data();
  int *const first = firstQuery_.data();
  Link *const links = links_.data();
  for (int q = static_cast<int>(tree.queries().size()) - 1; q >= 0; --q)
    links[q] = {queries[q].position, std::exchange(first[queries[q].node], q)};
}

/// One way through the tree does it all: a node's own queries and segments follow those of the nodes before
/// it, and what its subtree decides is filled in when that is closed.
void TreeView::walkTree(const tree::KvTree &tree) {
  const tree::Node *const nodes = tree.nodes().data();
  const int *const firstQuery = firstQuery_.data();
  Place *const first = places.data();
  Cursor at{links_.data(),
            callerIndex.data(),
            queryPos.data(),
            shared.data(),
            segments.data(),
            leaves.data(),
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            static_cast<int>(segments.size()),
            static_cast<int>(leaves.size())};
  int count = 0, parent = -1;
  int node = tree.firstRoot();
  while (node >= 0) {
    const tree::Node &facts = nodes[node];
    Place &place = first[count];
    const int index = count++, segmentBegin = at.segment, q = firstQuery[node];
    const int tokens = facts.tokens, location = facts.location, depth = facts.depth,
              position = facts.position;
    place.node = node;
    place.parent = parent;
    place.tokens = tokens;
    place.location = location;
    place.depth = depth;
    place.position = position;
    place.ownBegin = at.query;
    place.segmentBegin = segmentBegin;
    place.leaf = -1;
    const bool isOne = q >= 0 && at.links[q].next < 0;
    // The way to it goes over the last place that has both below.
    const int common = at.common = std::min(at.common, position);
    if (facts.firstChild < 0 && isOne) {
      addCommonLeaf(place, index, q, at);
      at.endOwn(common, depth);
      node = facts.nextSibling;
      for (; node < 0 && parent >= 0; parent = first[parent].parent) {
        close(first[parent], count, at);
        node = nodes[first[parent].node].nextSibling;
      }
      continue;
    }
    int done = 0;
    if (q >= 0) {
      done = isOne ? addOne(place, index, q, at) : addOwn(place, index, q, at);
      at.endOwn(common, depth);
    }
    place.ownEnd = at.query;
    if (facts.firstChild >= 0) {
      // What no own query ends before is seen by the queries below, if there are any.
      if (done < tokens)
        addSegment({index, done, tokens - done, at.query, at.query}, at);
      place.segmentEnd = at.segment;
      parent = index;
      node = facts.firstChild;
      continue;
    }
    place.subtreeEnd = count;
    place.readersEnd = at.query;
    place.segmentEnd = at.segment;
    for (int s = segmentBegin; s < at.segment; ++s)
      at.segments[s].queryEnd = at.query;
    if (q >= 0)
      place.leaf = addLeaf(leafOf(place, at), at);
    // Up from the leaf, closing what ends with it, to the next node that has a sibling left.
    node = facts.nextSibling;
    for (; node < 0 && parent >= 0; parent = first[parent].parent) {
      close(first[parent], count, at);
      node = nodes[first[parent].node].nextSibling;
    }
  }
  readTokens = at.readTokens;
  pathTokens = at.pathTokens;
  levels = at.levels;
  segments.resize(static_cast<std::size_t>(at.segment));
  leaves.resize(static_cast<std::size_t>(at.leaf));
}

inline void TreeView::addSegment(const Segment &segment, Cursor &at) {
  if (at.segment == at.segmentRoom) [[unlikely]] {
    segments.resize(2 * segments.size() + 16);
    at.segments = segments.data();
    at.segmentRoom = static_cast<int>(segments.size());
  }
  at.segments[at.segment++] = segment;
}

/// A node's own queries, and the segments that end where one of them does; their last reader is not known
/// yet. Returns how many tokens the last of them sees.
inline int TreeView::addOwn(const Place &place, int index, int firstQuery, Cursor &at) {
  const int begin = at.query;
  int done = 0;
  bool isSorted = true;
  for (int q = firstQuery; q >= 0; q = at.links[q].next) {
    const int position = at.links[q].position;
    const int tokens = position == tree::Query::kWhole ? place.tokens : position;
    isSorted &= done <= tokens;
    if (tokens > done) {
      addSegment({index, done, tokens - done, at.query, at.query}, at);
      done = tokens;
    }
    at.addQuery(q, place.position + tokens);
  }
  if (isSorted) [[likely]]
    return done;
  sortOwn(begin, at.query);
  for (int i = begin + 1; i < at.query; ++i)
    at.shared[i] = at.queryPos[i - 1] + 1;
  at.common = at.queryPos[at.query - 1] + 1;
  at.segment = place.segmentBegin;
  done = 0;
  for (int i = begin; i < at.query; ++i)
    if (const int tokens = seen(place, i); tokens > done) {
      addSegment({index, done, tokens - done, i, i}, at);
      done = tokens;
    }
  return done;
}

/// The same of one query.
inline int TreeView::addOne(const Place &place, int index, int q, Cursor &at) {
  const int position = at.links[q].position;
  const int tokens = position == tree::Query::kWhole ? place.tokens : position;
  if (tokens > 0)
    addSegment({index, 0, tokens, at.query, at.query + 1}, at);
  at.addQuery(q, place.position + tokens);
  return tokens;
}

/// A leaf with one query of its own: what most of them are.
inline void TreeView::addCommonLeaf(Place &place, int index, int q, Cursor &at) {
  const int i = at.query, tokens = place.tokens, sees = addOne(place, index, q, at);
  const bool isWhole = at.links[q].position == tree::Query::kWhole;
  place.subtreeEnd = index + 1;
  place.ownEnd = place.readersEnd = i + 1;
  place.segmentEnd = at.segment;
  const bool seesAll = sees == tokens;
  place.leaf = addLeaf(
      {place.node, tokens, tokens, seesAll ? i : i + 1, i + 1, tokens > 0 && (isWhole || !seesAll) ? 1 : 0},
      at);
}

inline int TreeView::addLeaf(const Plan::Leaf &leaf, Cursor &at) {
  if (at.leaf == at.leafRoom) [[unlikely]] {
    leaves.resize(2 * leaves.size() + 16);
    at.leaves = leaves.data();
    at.leafRoom = static_cast<int>(leaves.size());
  }
  at.leaves[at.leaf] = leaf;
  return at.leaf++;
}

/// Whether and for whom a leaf may grow in place: all that see its last token must see the next one, too.
Plan::Leaf TreeView::leafOf(const Place &place, const Cursor &at) {
  bool canGrow = place.tokens > 0;
  const int last = place.position + place.tokens - 1;
  int follow = place.ownEnd; // nobody reads to the end: the leaf may grow, and nothing changes
  for (; follow > place.ownBegin && at.queryPos[follow - 1] == last; --follow)
    canGrow &= at.links[at.callerIndex[follow - 1]].position == tree::Query::kWhole;
  return {place.node, place.tokens, place.tokens, follow, place.ownEnd, canGrow ? 1 : 0};
}

/// The subtree is done: its end is known.
inline void TreeView::close(Place &place, int placeEnd, Cursor &at) {
  place.subtreeEnd = placeEnd;
  place.readersEnd = at.query;
  if (place.segmentBegin == place.segmentEnd)
    return;
  // Nobody reads below: the last segment, which is then the last of all, is nobody's.
  if (at.segments[place.segmentEnd - 1].queryBegin == at.query)
    at.segment = --place.segmentEnd;
  for (int s = place.segmentBegin; s < place.segmentEnd; ++s)
    at.segments[s].queryEnd = at.query;
}

/// By (tokens seen, caller's index). The pairs differ, so the order needs no stable sort, which allocates.
[[gnu::noinline]] void TreeView::sortOwn(int begin, int end) {
  sorted_.clear();
  for (int i = begin; i < end; ++i)
    sorted_.emplace_back(queryPos[i], callerIndex[i]);
  std::sort(sorted_.begin(), sorted_.end());
  for (int i = begin; i < end; ++i)
    std::tie(queryPos[i], callerIndex[i]) = sorted_[i - begin];
}

} // namespace deft::plan
