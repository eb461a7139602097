#include "runtime/plan/VisibleTree.h"

#include "runtime/plan/Planner.h"
#include "runtime/plan/Segments.h"
#include "runtime/plan/Slope.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace deft::plan {

void VisibleTree::read(const tree::KvTree &tree, const Reach &reach, const Reach &ends, int step,
                       TreeView &view, bool mayJoin) {
  ranks_ = tree.ranks();
  if (reach.isAll() && !ranks_)
    return view.build(tree);
  mayJoin_ = mayJoin;
  reach_ = &reach;
  view_ = &view;
  step_ = step;
  ++reading_;
  at_ = {};
  const std::size_t queries = tree.queries().size();
  view.places.clear();
  view.segments.clear();
  view.leaves.clear();
  view.callerIndex.resize(queries);
  view.queryPos.resize(queries);
  view.shared.assign(queries + 1, 0);
  view.levels = 0;
  view.hasHidden = true;
  view.isClipped = false;

  sortQueries(tree, ends);
  markSeen(tree);
  for (int root = nextSeen(tree, tree.firstRoot()); root >= 0;
       root = nextSeen(tree, tree.nodes()[root].nextSibling))
    walk(tree, root);
  for (const int top : tops_)
    walk(tree, top);

  view.readTokens = 0;
  for (const Segment &segment : view.segments)
    view.readTokens += segment.tokens;
  view.pathTokens =
      std::accumulate(view.queryPos.begin(), view.queryPos.end(), static_cast<std::int64_t>(queries));
  if (reach.hasRisingStart())
    clip(view);
}

VisibleTree::Mark &VisibleTree::markOf(int node) {
  Mark &mark = marks_[node];
  if (mark.reading != reading_)
    mark = {.reading = reading_};
  return mark;
}

/// The end of the tokens of its own node that a query may see; kWhole if that is all, including later ones.
static int ownEndOf(const tree::KvTree &tree, const tree::Query &query, const Reach &ends) {
  if (query.position == tree::Query::kWhole || !ends.seesPath())
    return query.position;
  const tree::Node &node = tree.nodes()[query.node];
  return std::clamp(ends.endOfSeen(tree.pathTokens(query) - 1) - node.position, 0, node.tokens);
}

void VisibleTree::sortQueries(const tree::KvTree &tree, const Reach &ends) {
  const std::vector<tree::Query> &queries = tree.queries();
  marks_.resize(std::max(marks_.size(), tree.nodes().size()));
  links_.resize(queries.size());
  qPos_.resize(queries.size());
  sorted_.resize(queries.size());
  for (std::size_t q = queries.size(); q-- > 0;) {
    const int path = tree.pathTokens(queries[q]);
    links_[q] = {ownEndOf(tree, queries[q], ends),
                 std::exchange(markOf(queries[q].node).firstQuery, static_cast<int>(q))};
    qPos_[q] = path - 1;
    sorted_[q] = static_cast<std::uint64_t>(path) << 32 | q;
  }
  if (!std::is_sorted(sorted_.begin(), sorted_.end()))
    std::sort(sorted_.begin(), sorted_.end());
  lastQPos_ = sorted_.empty() ? -1 : static_cast<int>(sorted_.back() >> 32) - 1;
}

/// Whether a query of the node sees less of it than later queries, or ends inside its visible part.
bool VisibleTree::standsInside(std::size_t query, const tree::Node &node) const {
  const int ownEnd = links_[query].ownEnd;
  return ownEnd != tree::Query::kWhole && (ownEnd < node.tokens || reach_->seesPath());
}

/// Goes through queries by q_pos: earlier ones see farthest up, so a query stops where it meets their path.
void VisibleTree::markSeen(const tree::KvTree &tree) {
  tops_.clear();
  const tree::Node *const nodes = tree.nodes().data();
  for (const std::uint64_t key : sorted_) {
    const auto query = static_cast<std::uint32_t>(key);
    const int qPos = qPos_[query], lowest = reach_->lowest(qPos);
    const int own = tree.queries()[query].node;
    const bool standsInside = this->standsInside(query, nodes[own]);
    for (int node = own; node >= 0; node = nodes[node].parent) {
      Mark &mark = markOf(node);
      if (node != own || !standsInside)
        mark.leastQPos = std::min(mark.leastQPos, qPos);
      if (std::exchange(mark.isSeen, true))
        break;
      if (nodes[node].position <= lowest && nodes[node].parent >= 0) {
        tops_.push_back(node);
        break;
      }
    }
  }
  // A node above may be visible nevertheless, to queries of its own.
  std::erase_if(tops_, [&](int top) {
    const Mark &above = marks_[nodes[top].parent];
    return above.reading == reading_ && above.isSeen;
  });
}

/// The first visible node among the node and its next siblings.
int VisibleTree::nextSeen(const tree::KvTree &tree, int sibling) const {
  const tree::Node *const nodes = tree.nodes().data();
  while (sibling >= 0 && (marks_[sibling].reading != reading_ || !marks_[sibling].isSeen))
    sibling = nodes[sibling].nextSibling;
  return sibling;
}

void VisibleTree::walk(const tree::KvTree &tree, int top) {
  const tree::Node *const nodes = tree.nodes().data();
  open_.clear();
  open(tree, top, -1, !reach_->hasRisingEnd());
  for (int node = top;;) {
    int next = nextSeen(tree, nodes[node].firstChild);
    while (next < 0) {
      close(open_.back());
      const int closed = open_.back().node;
      open_.pop_back();
      if (open_.empty())
        return;
      next = nextSeen(tree, nodes[closed].nextSibling);
    }
    open(tree, next, open_.back().above, open_.back().canGrow);
    node = next;
  }
}

/// Appends the visible parts of a node, each as a place below the one before, and its queries where they end.
void VisibleTree::open(const tree::KvTree &tree, int index, int above, bool canGrow) {
  const tree::Node &node = tree.nodes()[index];
  const Mark &mark = marks_[index];
  own_.clear();
  for (int q = mark.firstQuery; q >= 0; q = links_[q].next)
    own_.emplace_back(links_[q].ownEnd == tree::Query::kWhole ? node.tokens : links_[q].ownEnd, q);
  // By (tokens seen, caller's index), as in TreeView.
  if (!std::is_sorted(own_.begin(), own_.end()))
    std::sort(own_.begin(), own_.end());
  findStretches(node, mark);
  findHeld(node, index);
  // If other ranks hold the growth of a leaf, none of its runs here may end at its end.
  if (ranks_ && node.firstChild < 0 && !own_.empty() && !isStandIn() &&
      holderOfGrowth(node, index) == tree::Ranks::Holder::Other)
    held_.push_back({node.tokens, node.tokens, 0, node.location});
  // Queries at the node's end move their windows on, but one that ends inside does not: in between, tokens
  // appear that no query sees any more.
  if (reach_->hasRisingStart() && !own_.empty() && own_.front().first < node.tokens)
    canGrow = false;
  if (!own_.empty()) {
    view_->levels = std::max(view_->levels, node.depth + 1);
    if (held_.empty()) // they need a place
      held_.push_back({0, 0, 0, node.location});
  }
  const int firstPlace = view_->placeCount();
  std::size_t next = 0; // the next query of the node
  const bool endsWithNode = !stretches_.empty() && stretches_.back().end == node.tokens;
  for (std::size_t s = 0; s < held_.size(); ++s) {
    const bool isLast = s + 1 == held_.size();
    const std::size_t begin = next;
    while (next < own_.size() && (isLast || own_[next].first < held_[s + 1].begin))
      ++next;
    addPlace(node, index, above, held_[s]);
    above = view_->placeCount() - 1;
    Place &place = view_->places.back();
    addQueries(place, begin, next, held_[s], node);
    if (isLast && node.firstChild < 0 && !own_.empty())
      addLeaf(place, node, canGrow && endsWithNode && showsGrowthOf(node) ? growthOf(place, node, index) : 0);
  }
  open_.push_back({index, firstPlace, view_->placeCount(), above, canGrow});
}

/// Whether queries at the leaf's end see all tokens by which a plan follows its growth in place. Hidden ones,
/// as behind a visible prefix, may have no page.
bool VisibleTree::showsGrowthOf(const tree::Node &leaf) {
  const int end = leaf.position + leaf.tokens, last = end + Planner::kMostGrowth - 1;
  reach_->find(end, last, seen_);
  return std::any_of(seen_.begin(), seen_.end(),
                     [&](const Positions &stretch) { return stretch.begin <= end && last < stretch.end; });
}

/// Finds the stretches of the node, relative to its beginning, that any of its readers sees. Queries at its
/// end or below it see it from the first one's window on; queries inside it see what their own windows
/// show.
void VisibleTree::findStretches(const tree::Node &node, const Mark &mark) {
  stretches_.clear();
  for (const auto &[tokens, query] : own_)
    if (const auto at = static_cast<std::size_t>(query); standsInside(at, node))
      addStretches(node, qPos_[at], qPos_[at]);
  if (mark.leastQPos != kUnseen)
    addStretches(node, mark.leastQPos, lastQPos_);
  const auto isBefore = [](const Positions &a, const Positions &b) { return a.begin < b.begin; };
  if (!std::is_sorted(stretches_.begin(), stretches_.end(), isBefore))
    std::sort(stretches_.begin(), stretches_.end(), isBefore);
  std::size_t kept = 0;
  for (const Positions &stretch : stretches_)
    if (kept > 0 && stretch.begin <= stretches_[kept - 1].end)
      stretches_[kept - 1].end = std::max(stretches_[kept - 1].end, stretch.end);
    else
      stretches_[kept++] = stretch;
  stretches_.resize(kept);
}

void VisibleTree::addStretches(const tree::Node &node, int firstQPos, int lastQPos) {
  reach_->find(firstQPos, lastQPos, seen_);
  for (const Positions &stretch : seen_) {
    const int begin = std::max(stretch.begin - node.position, 0);
    const int end = std::min(stretch.end - node.position, node.tokens);
    if (begin < end)
      stretches_.push_back({std::max(0, begin - ((node.location + begin) & (step_ - 1))), end});
  }
}

void VisibleTree::addPlace(const tree::Node &node, int index, int above, const tree::HeldTokens &held) {
  Place place{};
  place.node = index;
  place.parent = above;
  place.tokens = held.tokens;
  place.location = held.location;
  place.depth = node.depth;
  if (above >= 0) {
    const Place &parent = view_->places[static_cast<std::size_t>(above)];
    place.position = parent.position + parent.tokens;
  }
  place.hidden = node.position + held.begin - place.position;
  place.ownBegin = at_.query;
  place.segmentBegin = static_cast<int>(view_->segments.size());
  place.leaf = -1;
  at_.common = std::min(at_.common, place.position);
  view_->places.push_back(place);
}

/// Adds the queries that end in the stretch, or after it and before the next one; and the segments of the
/// stretch, which end where one of these queries does.
void VisibleTree::addQueries(Place &place, std::size_t begin, std::size_t end, const tree::HeldTokens &held,
                             const tree::Node &node) {
  const int index = view_->placeCount() - 1, ownEnd = at_.query + static_cast<int>(end - begin);
  const auto seenBy = [&](std::size_t i) {
    return ranks_ ? ranks_->countBefore(held, node.location, own_[i].first)
                  : std::clamp(own_[i].first - held.begin, 0, place.tokens);
  };
  const int done = cutWhereQueriesEnd(
      index, at_.query, static_cast<int>(end - begin), ownEnd,
      [&](int i) { return seenBy(begin + static_cast<std::size_t>(i)); },
      [&](const Segment &segment) { view_->segments.push_back(segment); });
  for (std::size_t i = begin; i < end; ++i) {
    const int seen = seenBy(i);
    const auto query = static_cast<std::size_t>(at_.query++);
    view_->callerIndex[query] = own_[i].second;
    view_->queryPos[query] = place.position + seen - 1;
    view_->shared[query] = std::exchange(at_.common, place.position + seen);
  }
  if (done < place.tokens) // for queries below; close() removes it if there are none
    view_->segments.push_back({index, done, place.tokens - done, ownEnd, ownEnd});
  place.ownEnd = ownEnd;
  place.segmentEnd = static_cast<int>(view_->segments.size());
}

/// Adds a leaf. It may grow in place if the queries that see its last token also see its new ones, and
/// nothing else changes.
void VisibleTree::addLeaf(Place &place, const tree::Node &node, int growth) {
  bool canGrow = node.tokens > 0;
  const int last = place.position + place.tokens - 1;
  int follow = place.ownEnd;
  for (; follow > place.ownBegin && view_->queryPos[static_cast<std::size_t>(follow) - 1] == last; --follow)
    canGrow &= links_[view_->callerIndex[static_cast<std::size_t>(follow) - 1]].ownEnd == tree::Query::kWhole;
  if (follow < place.ownEnd && place.segmentBegin < place.segmentEnd && view_->segments.back().slope != 0)
    canGrow = false; // as in TreeView
  place.leaf = view_->leafCount();
  const int grows = canGrow ? growth : 0;
  view_->leaves.push_back({place.node, node.tokens, node.tokens, follow, place.ownEnd, grows,
                           grows == 3 ? heldNextOf(node, place.node) : 0});
}

void VisibleTree::close(const OpenNode &node) {
  for (int p = node.endPlace; p-- > node.firstPlace;) {
    Place &place = view_->places[static_cast<std::size_t>(p)];
    place.subtreeEnd = view_->placeCount();
    place.readersEnd = at_.query;
    if (place.segmentBegin == place.segmentEnd)
      continue;
    // If no query reads below, the last segment, which is then the last of all, has no readers.
    if (view_->segments[static_cast<std::size_t>(place.segmentEnd) - 1].queryBegin == at_.query) {
      --place.segmentEnd;
      view_->segments.resize(view_->segments.size() - 1);
    }
    for (int s = place.segmentBegin; s < place.segmentEnd; ++s)
      view_->segments[static_cast<std::size_t>(s)].queryEnd = at_.query;
  }
}

/// Removes the last readers of segments if the mask shows them none of it. The other readers that see none
/// form no interval, so the kernels hide these. Only if it saves much, since paths are simpler without.
void VisibleTree::clip(TreeView &view) {
  constexpr int kWorthwhile = 8; // one of so many (query, token) pairs
  const auto queries = static_cast<std::size_t>(view.queryCount());
  planQPos_.resize(queries);
  risingFrom_.resize(queries);
  for (std::size_t i = 0; i < queries; ++i) {
    planQPos_[i] = qPos_[static_cast<std::size_t>(view.callerIndex[i])];
    risingFrom_[i] = i > 0 && planQPos_[i - 1] <= planQPos_[i] ? risingFrom_[i - 1] : static_cast<int>(i);
  }
  clipped_.clear();
  spared_ = 0;
  for (const Segment &segment : view.segments)
    clipSegment(segment, view.places[static_cast<std::size_t>(segment.place)]);
  if (spared_ * kWorthwhile < view.pathTokens || spared_ == 0)
    return;
  view.isClipped = true;
  view.segments.resize(clipped_.size());
  std::copy(clipped_.begin(), clipped_.end(), view.segments.begin());
  int next = 0;
  const int count = static_cast<int>(clipped_.size());
  for (int p = 0; p < view.placeCount(); ++p) {
    Place &place = view.places[static_cast<std::size_t>(p)];
    place.segmentBegin = next;
    while (next < count && clipped_[static_cast<std::size_t>(next)].place == p)
      ++next;
    place.segmentEnd = next;
  }
  countClipped(view);
}

/// Clips a segment in parts if its beginning has fewer readers than its end.
void VisibleTree::clipSegment(const Segment &segment, const Place &place) {
  constexpr int kStep = 64;                            // a kernel's step
  const int mostParts = segment.slope != 0 ? 256 : 64; // the readers change from token to token
  const int position = place.position + place.hidden + segment.begin;
  const auto add = [&](int begin, int tokens, int queryEnd) {
    Segment part = segment;
    dropFirst(part, begin);
    part.tokens = tokens;
    spared_ += pairsOf(part);
    if (queryEnd <= part.queryBegin)
      return;
    part.queryEnd = queryEnd;
    if (part.slope != 0) // the remaining readers come before the own queries of the last tokens
      part.tokens = std::min(tokens, queryEnd - part.queryBegin);
    spared_ -= pairsOf(part);
    clipped_.push_back(part);
  };
  // If the last query sees the first token, all queries do.
  if (reach_->firstFrom(lastQPos_, position) == position)
    return add(0, segment.tokens, segment.queryEnd);
  const int allEnd = endOfReaders(segment, position, position + segment.tokens);
  const int most = std::max(kStep, (segment.tokens / mostParts + kStep - 1) / kStep * kStep);
  int done = 0;
  while (done < segment.tokens) {
    Segment rest = segment; // its own first reader sees its first token
    dropFirst(rest, done);
    const int offset = (place.location + rest.begin) & (kStep - 1);
    const int tokens = std::min(segment.tokens - done, most - offset);
    const int queryEnd =
        tokens == segment.tokens ? allEnd : endOfReaders(rest, position + done, position + done + tokens);
    if (queryEnd == allEnd)
      break; // later parts have no fewer readers
    add(done, tokens, queryEnd);
    done += tokens;
  }
  if (done < segment.tokens)
    add(done, segment.tokens - done, allEnd);
}

/// The end of the segment's readers that see any of the positions [begin, end). In a row of rising q_pos
/// these come first. After kMostRows rows the result may be too large, which is safe.
int VisibleTree::endOfReaders(const Segment &segment, int begin, int end) const {
  constexpr int kMostRows = 32;
  const auto sees = [&](int query) {
    return reach_->firstFrom(planQPos_[static_cast<std::size_t>(query)], begin) < end;
  };
  int last = segment.queryEnd - 1;
  for (int row = 0; last >= segment.queryBegin && row < kMostRows; ++row) {
    if (sees(last))
      return last + 1;
    int first = std::max(risingFrom_[static_cast<std::size_t>(last)], segment.queryBegin);
    if (reach_->hasRisingEnd()) { // then they may come in any order
      --last;
      continue;
    }
    // Queries before or among the tokens may start to see them late, or at first see none: a mask may hide
    // the beginning of a prompt in which a step begins. All of these are kept.
    const auto queries = planQPos_.begin();
    const auto past = std::lower_bound(queries + first, queries + last + 1, end - 1) - queries;
    if (past > first && (past > last || !sees(static_cast<int>(past))))
      return static_cast<int>(past);
    first = static_cast<int>(past);
    if (!sees(first)) {
      last = first - 1;
      continue;
    }
    for (int none = last; none - first > 1;) {
      const int middle = first + (none - first) / 2;
      (sees(middle) ? first : none) = middle;
    }
    return first + 1;
  }
  return last + 1;
}

/// Counts by segments the tokens that each query reads, and those that it shares with the query before it.
void VisibleTree::countClipped(TreeView &view) {
  const auto queries = static_cast<std::size_t>(view.queryCount());
  changes_.assign(queries + 1, 0);
  bothChange_.assign(queries + 1, 0);
  const auto count = [&](int queryBegin, int queryEnd, int tokens) {
    changes_[static_cast<std::size_t>(queryBegin)] += tokens;
    changes_[static_cast<std::size_t>(queryEnd)] -= tokens;
    if (queryEnd - queryBegin > 1) {
      bothChange_[static_cast<std::size_t>(queryBegin) + 1] += tokens;
      bothChange_[static_cast<std::size_t>(queryEnd)] -= tokens;
    }
  };
  for (const Segment &segment : view.segments) {
    if (segment.slope == 0) {
      count(segment.queryBegin, segment.queryEnd, segment.tokens);
      continue;
    }
    for (int t = 0; t < segment.tokens; ++t)
      count(segment.queryBegin + t, segment.queryEnd, 1);
  }
  view.clippedPos.resize(queries);
  std::int64_t reads = 0, shares = 0;
  view.pathTokens = 0;
  for (std::size_t i = 0; i < queries; ++i) {
    reads += changes_[i];
    shares += bothChange_[i];
    view.clippedPos[i] = static_cast<int>(reads) - 1;
    view.shared[i] = static_cast<int>(shares);
    view.pathTokens += reads;
  }
}

VisibleCounts countVisible(const tree::KvTree &tree, const Reach &reach) {
  VisibleTree visible;
  TreeView view;
  visible.read(tree, reach, /*step=*/1, view);
  VisibleCounts counts{view.readTokens, 0};
  std::vector<Positions> seen;
  for (const tree::Query &query : tree.queries()) {
    const int qPos = tree.pathTokens(query) - 1;
    reach.find(qPos, qPos, seen);
    const int pathEnd = tree.pathEnd(query);
    for (const Positions &stretch : seen)
      counts.pairs += std::max(std::min(stretch.end, pathEnd) - stretch.begin, 0);
  }
  return counts;
}

} // namespace deft::plan
