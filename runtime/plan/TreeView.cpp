#include "runtime/plan/TreeView.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <utility>

namespace deft::plan {

/// What a place has of its node in one piece, in bytes.
static constexpr std::size_t kCopied = 4 * sizeof(int);

/// Where the next query and the next segment go, and what the last query leaves to the next one.
struct TreeView::Cursor {
  int query = 0, segment = 0;
  int common = 0; ///< tokens of the last query's path that the next one sees, too
};

void TreeView::build(const tree::KvTree &tree) {
  hasHidden = isClipped = false;
  chainQueries(tree);
  places.resize(static_cast<std::size_t>(tree.aliveNodes()));
  callerIndex.resize(tree.queries().size());
  queryPos.resize(tree.queries().size());
  shared.resize(tree.queries().size() + 1);
  shared.back() = 0;
  // As many as there may be: a node has one more segment than queries, at most.
  segments.resize(places.size() + callerIndex.size());
  leaves.resize(places.size());
  walkTree(tree);
  pathTokens = std::accumulate(queryPos.begin(), queryPos.end(), std::int64_t{queryCount()});
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
/// it, and what its subtree decides is filled in when that is closed. Few values and plain pointers, so that
/// registers hold them; what is rare works on a copy.
void TreeView::walkTree(const tree::KvTree &tree) {
  static_assert(offsetof(Place, position) - offsetof(Place, tokens) == kCopied - sizeof(int));
  static_assert(offsetof(tree::Node, position) - offsetof(tree::Node, tokens) == kCopied - sizeof(int));
  const tree::Node *const nodes = tree.nodes().data();
  const int *const firstQuery = firstQuery_.data();
  const Link *const links = links_.data();
  Place *const first = places.data();
  int *const callers = callerIndex.data(), *const positions = queryPos.data(), *const commons = shared.data();
  Segment *const allSegments = segments.data();
  Plan::Leaf *const allLeaves = leaves.data();
  Cursor at;
  std::int64_t read = 0;
  int deepest = -1, count = 0, leaf = 0, parent = -1;
  for (int node = tree.firstRoot(); node >= 0;) {
    const tree::Node &facts = nodes[node];
    const int index = count++, ownBegin = at.query, firstOwn = firstQuery[node];
    const int tokens = facts.tokens, child = facts.firstChild, path = facts.position + tokens;
    Place &place = first[index];
    place.node = node;
    place.parent = parent;
    std::memcpy(&place.tokens, &facts.tokens, kCopied);
    place.ownBegin = ownBegin;
    place.segmentBegin = at.segment;
    place.leaf = -1;
    place.hidden = 0;
    // The way to it goes over the last place that has both below.
    const int before = at.common = std::min(at.common, facts.position);
    bool seeAll = true;
    for (int q = firstOwn; q >= 0; q = links[q].next) {
      seeAll &= links[q].position == tree::Query::kWhole;
      callers[at.query] = q;
      positions[at.query] = path - 1;
      commons[at.query++] = std::exchange(at.common, path);
    }
    if (seeAll) [[likely]] {
      if (tokens > 0 && (firstOwn >= 0 || child >= 0))
        allSegments[at.segment++] = {index, 0, tokens, ownBegin, at.query};
    } else {
      at = addPartial(place, index, firstOwn, {ownBegin, at.segment, before});
      // What no own query ends before is seen by the queries below, if there are any.
      if (const int seen = at.common - facts.position; child >= 0 && seen < tokens)
        allSegments[at.segment++] = {index, seen, tokens - seen, at.query, at.query};
    }
    place.ownEnd = at.query;
    place.segmentEnd = at.segment;
    if (firstOwn >= 0) {
      read += at.common - before;
      deepest = std::max(deepest, facts.depth);
    }
    if (child >= 0) {
      parent = index;
      node = child;
      continue;
    }
    place.subtreeEnd = count;
    place.readersEnd = at.query;
    if (firstOwn >= 0) {
      allLeaves[leaf] =
          seeAll ? Plan::Leaf{node, tokens, tokens, ownBegin, at.query, tokens > 0 ? 1 : 0} : leafOf(place);
      place.leaf = leaf++;
    }
    // Up from the leaf, closing what ends with it, to the next node that has a sibling left.
    node = facts.nextSibling;
    for (; node < 0 && parent >= 0; parent = first[parent].parent) {
      close(first[parent], count, at);
      node = nodes[first[parent].node].nextSibling;
    }
  }
  readTokens = read;
  levels = deepest + 1;
  segments.resize(static_cast<std::size_t>(at.segment));
  leaves.resize(static_cast<std::size_t>(leaf));
}

/// A node's own queries, some of which may not see all of it, and the segments that end where one of them
/// does; those of a node with children get their last reader when that is closed.
[[gnu::noinline]] TreeView::Cursor TreeView::addPartial(const Place &place, int index, int firstQuery,
                                                        Cursor at) {
  sorted_.clear();
  for (int q = firstQuery; q >= 0; q = links_[q].next) {
    const int position = links_[q].position;
    sorted_.emplace_back(place.position + (position == tree::Query::kWhole ? place.tokens : position), q);
  }
  // By (tokens seen, caller's index). The pairs differ, so the order needs no stable sort, which allocates.
  if (!std::is_sorted(sorted_.begin(), sorted_.end()))
    std::sort(sorted_.begin(), sorted_.end());
  const int ownEnd = at.query + static_cast<int>(sorted_.size());
  int done = place.position;
  for (const auto &[path, q] : sorted_) {
    if (path > done) {
      segments[at.segment++] = {index, done - place.position, path - done, at.query, ownEnd};
      done = path;
    }
    callerIndex[at.query] = q;
    queryPos[at.query] = path - 1;
    shared[at.query++] = std::exchange(at.common, path);
  }
  return at;
}

/// Whether and for whom a leaf may grow in place: all that see its last token must see the next one, too.
Plan::Leaf TreeView::leafOf(const Place &place) const {
  bool canGrow = place.tokens > 0;
  const int last = place.position + place.tokens - 1;
  int follow = place.ownEnd; // nobody reads to the end: the leaf may grow, and nothing changes
  for (; follow > place.ownBegin && queryPos[follow - 1] == last; --follow)
    canGrow &= links_[callerIndex[follow - 1]].position == tree::Query::kWhole;
  return {place.node, place.tokens, place.tokens, follow, place.ownEnd, canGrow ? 1 : 0};
}

/// The subtree is done: its end is known.
inline void TreeView::close(Place &place, int placeEnd, Cursor &at) {
  place.subtreeEnd = placeEnd;
  place.readersEnd = at.query;
  if (place.segmentBegin == place.segmentEnd)
    return;
  Segment *const own = segments.data();
  // Nobody reads below: the last segment, which is then the last of all, is nobody's.
  if (own[place.segmentEnd - 1].queryBegin == at.query)
    at.segment = --place.segmentEnd;
  for (int s = place.segmentBegin; s < place.segmentEnd; ++s)
    own[s].queryEnd = at.query;
}

} // namespace deft::plan
