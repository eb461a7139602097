#include "runtime/sharing/PrefixForest.h"

#include "runtime/sharing/SamePages.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace deft::sharing {

using tree::Depths;

namespace {

/// Of a change of the tree that cannot fail: who calls has seen that numbers and places fit.
template <typename T> T must(support::Result<T> result) {
  assert(result);
  return std::move(*result);
}
void must(const support::Result<void> &result) { assert(result); }

} // namespace

int PrefixForest::insert(const int *table, std::int64_t firstEntry, int tokens) {
  beginEdit();
  int member = static_cast<int>(members_.size());
  if (freeMembers_.empty()) {
    members_.emplace_back();
  } else {
    member = freeMembers_.back();
    freeMembers_.pop_back();
  }
  members_[index(member)] = {.firstEntry = firstEntry, .tokens = tokens};
  if (tokens == 0)
    endAtNothing(member);
  else
    goDown(table, member, -1, 0);
  return member;
}

void PrefixForest::remove(int member) {
  beginEdit();
  int lowest = members_[index(member)].node; // that is left, of those that the member may have named
  unlinkEnd(member);
  members_[index(member)].node = -1;
  freeMembers_.push_back(member);
  if (lowest == emptyNode_)
    return leaveNothing();
  if (facts(lowest).firstEnd < 0 && node(lowest).firstChild < 0) {
    const int leaf = lowest;
    lowest = node(leaf).parent;
    leave(lowest, leaf);
    must(tree_.prune(leaf));
  }
  if (lowest >= 0 && isIdle(lowest))
    lowest = joinToChild(lowest);
  nameAnew(lowest, member);
}

void PrefixForest::grow(const int *table, int member, int tokens) {
  Member &own = members_[index(member)];
  const int end = own.node, before = own.tokens;
  own.tokens = tokens;
  // Nobody else has the last page at this place, or has so much of it: what comes behind is nobody else's.
  if (facts(end).firstEnd == member && own.next < 0 && node(end).firstChild < 0 && end != emptyNode_)
    return hasStep(end) ? must(tree_.append(end, tokens - before)) : growFirstStep(table, member);
  beginEdit();
  unlinkEnd(member);
  if (end == emptyNode_) {
    leaveNothing();
    return goDown(table, member, -1, 0);
  }
  goDown(table, member, end, before);
  if (isIdle(end))
    (void)joinToChild(end);
}

/// A leaf of less than a step, which nobody looked up. Children of a node have no step in common, so where
/// another one has what this one's becomes, the member goes there.
void PrefixForest::growFirstStep(const int *table, int member) {
  const Member &own = members_[index(member)];
  const int leaf = own.node, parent = node(leaf).parent, begin = node(leaf).position;
  if (childOf(table, parent, own, begin) >= 0) {
    beginEdit();
    unlinkEnd(member);
    must(tree_.prune(leaf));
    goDown(table, member, parent, begin);
    if (parent >= 0 && isIdle(parent))
      (void)joinToChild(parent);
    return;
  }
  must(tree_.append(leaf, own.tokens - begin - node(leaf).tokens));
  if (hasStep(leaf)) {
    facts(leaf).first = firstOf(table + own.firstEntry, begin);
    enter(parent, leaf);
  }
}

/// From the end of a node (-1: from nothing), where the member has `done` tokens, to its own end.
void PrefixForest::goDown(const int *table, int member, int from, int done) {
  const Member &own = members_[index(member)];
  const int *const row = table + own.firstEntry;
  int end = from;
  while (done < own.tokens) {
    const int child = childOf(table, end, own, done);
    if (child < 0) {
      end = addNode(table, end, member, done);
      break;
    }
    const int childEnd = node(child).position + node(child).tokens;
    const int *const other = table + members_[index(facts(child).namer)].firstEntry;
    done = commonTokens(row, other, done, std::min(childEnd, own.tokens));
    if (step_ > 1)
      done -= done % step_;
    end = done < childEnd ? cut(table, child, done - node(child).position) : child;
  }
  linkEnd(member, end);
}

/// The rest of a member, which nobody else has.
int PrefixForest::addNode(const int *table, int parent, int member, int done) {
  const Member &own = members_[index(member)];
  const int added =
      must(tree_.addNode(parent, own.tokens - done, static_cast<int>(locationIn(member, done))));
  facts_.resize(std::max(facts_.size(), index(added) + 1));
  facts(added) = {.namer = member};
  if (hasStep(added)) {
    facts(added).first = firstOf(table + own.firstEntry, done);
    enter(parent, added);
  }
  return added;
}

/// Cuts a node behind so many tokens; gives the new node, which has them.
int PrefixForest::cut(const int *table, int child, int tokens) {
  const int parent = node(child).parent;
  const int upper = must(tree_.split(child, tokens, Depths::Later));
  facts_.resize(std::max(facts_.size(), index(upper) + 1));
  NodeFacts &lower = facts(child);
  facts(upper) = {.namer = lower.namer, .firstEnd = -1, .first = lower.first};
  children_.set(childKey(parent, lower.first), upper); // where `child` was found
  if (hasStep(child)) {
    lower.first = firstOf(table + members_[index(lower.namer)].firstEntry, node(child).position);
    enter(upper, child);
  }
  return upper;
}

int PrefixForest::firstOf(const int *row, int done) const {
  if (step_ == 1)
    return row[pageSize_.pageOf(done)];
  std::uint32_t mixed = 0;
  for (int page = pageSize_.pageOf(done), end = pageSize_.pagesFor(done + step_); page < end; ++page)
    mixed = (std::rotl(mixed, 5) ^ static_cast<std::uint32_t>(row[page])) * 0x9e3779b9u;
  return static_cast<int>(mixed);
}

/// Of two children whose steps give the same number by chance the first one is found.
void PrefixForest::enter(int parent, int child) {
  if (const std::uint64_t key = childKey(parent, facts(child).first); step_ == 1 || children_.find(key) < 0)
    children_.set(key, child);
}

void PrefixForest::leave(int parent, int child) {
  if (const std::uint64_t key = childKey(parent, facts(child).first);
      step_ == 1 || (hasStep(child) && children_.find(key) == child))
    children_.erase(key);
}

/// The child that has the member's next page, or all of its next step; -1: there is none.
int PrefixForest::childOf(const int *table, int parent, const Member &member, int done) const {
  if (member.tokens - done < step_)
    return -1;
  const int *const row = table + member.firstEntry;
  const int child = children_.find(childKey(parent, firstOf(row, done)));
  if (step_ == 1 || child < 0)
    return child;
  const int *const other = table + members_[index(facts(child).namer)].firstEntry;
  const int begin = pageSize_.pageOf(done), pages = pageSize_.pagesFor(done + step_) - begin;
  return samePages(row + begin, other + begin, pages) == pages ? child : -1;
}

/// How many tokens, at most `to`, two rows have in common that have more than `from` in common.
int PrefixForest::commonTokens(const int *row, const int *other, int from, int to) const {
  const int begin = pageSize_.pageOf(from) + 1, end = pageSize_.pagesFor(to);
  return std::min(to, (begin + samePages(row + begin, other + begin, end - begin)) * pageSize_.tokens());
}

bool PrefixForest::isIdle(int number) const {
  const int child = node(number).firstChild;
  return facts(number).firstEnd < 0 && child >= 0 && node(child).nextSibling < 0;
}

/// An idle node becomes the beginning of its child, which is returned. That one's namer has both.
int PrefixForest::joinToChild(int number) {
  const int child = node(number).firstChild, parent = node(number).parent;
  NodeFacts &lower = facts(child);
  leave(number, child);
  leave(parent, number);
  lower.first = facts(number).first;
  enter(parent, child);
  facts(number).namer = lower.namer;
  placeAtNamer(number);
  must(tree_.join(number, Depths::Later));
  return child;
}

/// From a node up to its root, what a member has named that has left is named by another one below.
void PrefixForest::nameAnew(int from, int left) {
  for (int at = from; at >= 0; at = node(at).parent)
    if (NodeFacts &own = facts(at); own.namer == left) {
      own.namer = own.firstEnd >= 0 ? own.firstEnd : facts(node(at).firstChild).namer;
      placeAtNamer(at);
    }
}

void PrefixForest::placeAtNamer(int number) {
  const auto location = static_cast<int>(locationIn(facts(number).namer, node(number).position));
  if (node(number).location != location)
    must(tree_.place(number, location));
}

void PrefixForest::placeMoved() {
  for (int at = tree_.firstRoot(); at >= 0; at = tree_.nextInPreorder(at))
    if (at != emptyNode_)
      placeAtNamer(at);
}

void PrefixForest::endAtNothing(int member) {
  if (emptyNode_ < 0) {
    emptyNode_ = must(tree_.addNode(-1, 0));
    facts_.resize(std::max(facts_.size(), index(emptyNode_) + 1));
    facts(emptyNode_) = {};
  }
  linkEnd(member, emptyNode_);
}

/// Somebody has left the node without tokens.
void PrefixForest::leaveNothing() {
  if (facts(emptyNode_).firstEnd >= 0)
    return;
  must(tree_.prune(emptyNode_));
  emptyNode_ = -1;
}

void PrefixForest::linkEnd(int member, int number) {
  Member &own = members_[index(member)];
  own.node = number;
  own.previous = -1;
  own.next = facts(number).firstEnd;
  if (own.next >= 0)
    members_[index(own.next)].previous = member;
  facts(number).firstEnd = member;
}

void PrefixForest::unlinkEnd(int member) {
  const Member &own = members_[index(member)];
  (own.previous >= 0 ? members_[index(own.previous)].next : facts(own.node).firstEnd) = own.next;
  if (own.next >= 0)
    members_[index(own.next)].previous = own.previous;
}

/// Queries go before nodes do, all at once: a tree that loses a node looks through all of them.
void PrefixForest::beginEdit() {
  if (!isEdited_ && !tree_.queries().empty())
    tree_.clearQueries();
  isEdited_ = true;
}

int PrefixForest::addStandIn(int member, int tokens) {
  beginEdit();
  const Member &own = members_[index(member)];
  standIns_.push_back(
      must(tree_.addNode(own.node, tokens, static_cast<int>(locationIn(member, own.tokens)))));
  facts_.resize(std::max(facts_.size(), index(standIns_.back()) + 1));
  return standIns_.back();
}

void PrefixForest::removeStandIns() {
  if (standIns_.empty())
    return;
  beginEdit();
  for (const int node : standIns_)
    must(tree_.prune(node));
  standIns_.clear();
}

std::int64_t PrefixForest::standInTokens() const {
  std::int64_t tokens = 0;
  for (const int number : standIns_)
    tokens += node(number).tokens;
  return tokens;
}

void PrefixForest::setQueries(std::span<const tree::Query> queries) { must(tree_.setQueries(queries)); }

bool PrefixForest::settle() {
  if (!isEdited_)
    return false;
  isEdited_ = false;
  tree_.countDepths();
  return true;
}

void PrefixForest::clear() {
  tree_.clear();
  facts_.clear();
  members_.clear();
  freeMembers_.clear();
  children_.clear();
  standIns_.clear();
  emptyNode_ = -1;
  isEdited_ = true;
}

} // namespace deft::sharing
