#include "runtime/plan/TreeView.h"

#include "runtime/plan/Segments.h"
#include "runtime/plan/Slope.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <utility>

namespace deft::plan {

/// The bytes of a place that are copied from its node in one piece.
static constexpr std::size_t kCopied = 4 * sizeof(int);

/// The places for the next query and segment, and the value that the last query passes to the next one.
struct TreeView::Cursor {
  int query = 0, segment = 0;
  int common = 0; ///< tokens of the last query's path that the next one also sees
};

void TreeView::build(const tree::KvTree &tree) {
  hasHidden = isClipped = false;
  chainQueries(tree);
  places.resize(static_cast<std::size_t>(tree.aliveNodes()));
  callerIndex.resize(tree.queries().size());
  queryPos.resize(tree.queries().size());
  shared.resize(tree.queries().size() + 1);
  shared.back() = 0;
  // The upper limit: a node has at most one segment more than it has queries.
  segments.resize(places.size() + callerIndex.size());
  leaves.resize(places.size());
  walkTree(tree);
  if (segments.size() < queryPos.size()) { // with causal stretches there are more queries than segments
    pathTokens = 0;
    for (const Segment &segment : segments)
      pathTokens += pairsOf(segment);
  } else {
    pathTokens = std::accumulate(queryPos.begin(), queryPos.end(), std::int64_t{queryCount()});
  }
}

namespace {

/// Whether a query ends exactly one token before another one of its node.
bool isJustBefore(const tree::KvTree &tree, const tree::Query &query, const tree::Query &other) {
  return query.position >= 0 && query.position + 1 == tree.seenTokens(other);
}

/// A query as a single number.
std::uint64_t wordOf(const tree::Query &query) {
  std::uint64_t word;
  static_assert(sizeof word == sizeof query);
  std::memcpy(&word, &query, sizeof word);
  return word;
}

/// The first query of the row that ends with `last`, in which each query ends one token before the next.
int beginOfCausal(const tree::KvTree &tree, int last) {
  const tree::Query *const queries = tree.queries().data();
  const int node = queries[last].node;
  if (last == 0 || queries[last - 1].node != node || !isJustBefore(tree, queries[last - 1], queries[last]))
    return last;
  int begin = last - 1;
  constexpr int kAtOnce = 16; // compares several without a branch for each
  const std::uint64_t next = wordOf({0, 1});
  for (; begin >= kAtOnce && queries[begin].position >= kAtOnce; begin -= kAtOnce) {
    std::uint64_t differ = 0;
    const std::uint64_t expected = wordOf({node, queries[begin].position - kAtOnce});
    std::array<std::uint64_t, kAtOnce> words;
    std::memcpy(words.data(), queries + (begin - kAtOnce), sizeof words);
    for (int i = 0; i < kAtOnce; ++i)
      differ |= words[static_cast<std::size_t>(i)] ^ (expected + static_cast<std::uint64_t>(i) * next);
    if (differ != 0)
      break;
  }
  while (begin > 0 && queries[begin].position > 0 && queries[begin - 1].node == node &&
         queries[begin - 1].position == queries[begin].position - 1)
    --begin;
  return begin;
}

} // namespace

void TreeView::chainQueries(const tree::KvTree &tree) {
  firstQuery_.assign(tree.nodes().size(), -1);
  links_.resize(tree.queries().size());
  const tree::Query *const queries = tree.queries().data();
  int *const first = firstQuery_.data();
  Link *const links = links_.data();
  for (int last = static_cast<int>(tree.queries().size()) - 1; last >= 0;) {
    int begin = last;
    const int node = queries[last].node;
    if (last > 0 && queries[last - 1].node == node) [[unlikely]]
      begin = beginOfCausal(tree, last);
    links[begin] = {queries[begin].position, std::exchange(first[node], begin), last - begin + 1};
    last = begin - 1;
  }
}

/// A single pass over the tree. A node's own queries and segments follow those of earlier nodes; values that
/// depend on its subtree are filled in when the subtree is closed. Few variables and plain pointers, so that
/// they stay in registers; rare cases work on a copy.
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
    // The path to it passes through the last place that has both below it.
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
      at = addPartial(tree, place, index, firstOwn, {ownBegin, at.segment, before});
      // Queries below, if there are any, see the tokens behind the end of the last own query.
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
      allLeaves[leaf] = seeAll ? Plan::Leaf{node, tokens, tokens, ownBegin, at.query, tokens > 0 ? 1 : 0, 0}
                               : leafOf(tree, place, at.segment);
      place.leaf = leaf++;
    }
    // Goes up from the leaf to the next node with a sibling left, and closes the nodes on the way.
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

/// Adds a node's own queries, some of which may not see all of it, and the segments that end where one of
/// them does. In a node with children the last readers are set when it is closed.
[[gnu::noinline]] TreeView::Cursor TreeView::addPartial(const tree::KvTree &tree, const Place &place,
                                                        int index, int firstQuery, Cursor at) {
  if (const Link &only = links_[firstQuery]; only.next < 0 && only.count >= kLeastCausal && only.position > 0)
    return addCausal(place, index, firstQuery, at);
  sorted_.clear();
  for (int first = firstQuery; first >= 0; first = links_[first].next)
    for (int q = first; q < first + links_[first].count; ++q)
      sorted_.emplace_back(tree.pathTokens(tree.queries()[q]), q);
  // By (tokens seen, caller's index). No two pairs are equal, so the sort need not be stable or allocate.
  if (!std::is_sorted(sorted_.begin(), sorted_.end()))
    std::sort(sorted_.begin(), sorted_.end());
  const int count = static_cast<int>(sorted_.size());
  cutWhereQueriesEnd(
      index, at.query, count, at.query + count, [&](int i) { return sorted_[i].first - place.position; },
      [&](const Segment &segment) { segments[at.segment++] = segment; });
  for (const auto &[path, q] : sorted_) {
    callerIndex[at.query] = q;
    queryPos[at.query] = path - 1;
    shared[at.query++] = std::exchange(at.common, path);
  }
  return at;
}

/// Adds segments and queries of a node whose only queries end at consecutive tokens: a prompt may have many
/// of them.
TreeView::Cursor TreeView::addCausal(const Place &place, int index, int firstQuery, Cursor at) {
  const Link &link = links_[firstQuery];
  const int begin = at.query, end = begin + link.count, before = link.position - 1;
  if (before > 0)
    segments[at.segment++] = {index, 0, before, begin, end};
  segments[at.segment++] = {index, before, link.count, begin, end, 1};
  const int path = place.position + link.position; // of the first query
  std::iota(callerIndex.data() + begin, callerIndex.data() + end, firstQuery);
  std::iota(queryPos.data() + begin, queryPos.data() + end, path - 1);
  shared[begin] = at.common;
  std::iota(shared.data() + begin + 1, shared.data() + end, path);
  at.query = end;
  at.common = path + link.count - 1;
  return at;
}

/// Whether a leaf may grow in place, and for which queries: all that see its last token must see the next one
/// as well, which is not so within a causal stretch.
Plan::Leaf TreeView::leafOf(const tree::KvTree &tree, const Place &place, int segmentEnd) const {
  bool canGrow = place.tokens > 0;
  const int last = place.position + place.tokens - 1;
  int follow = place.ownEnd; // no query reads to the end: the leaf may grow without any effect
  for (; follow > place.ownBegin && queryPos[follow - 1] == last; --follow)
    canGrow &= tree.queries()[callerIndex[follow - 1]].position == tree::Query::kWhole;
  if (follow < place.ownEnd && segmentEnd > place.segmentBegin && segments[segmentEnd - 1].slope != 0)
    canGrow = false;
  return {place.node, place.tokens, place.tokens, follow, place.ownEnd, canGrow ? 1 : 0, 0};
}

/// Ends the subtree of a place.
inline void TreeView::close(Place &place, int placeEnd, Cursor &at) {
  place.subtreeEnd = placeEnd;
  place.readersEnd = at.query;
  if (place.segmentBegin == place.segmentEnd)
    return;
  Segment *const own = segments.data();
  // If no query reads below, the last segment, which is then the last of all, has no readers.
  if (own[place.segmentEnd - 1].queryBegin == at.query)
    at.segment = --place.segmentEnd;
  for (int s = place.segmentBegin; s < place.segmentEnd; ++s)
    own[s].queryEnd = at.query;
}

} // namespace deft::plan
