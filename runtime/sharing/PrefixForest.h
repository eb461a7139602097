#pragma once

#include "runtime/sharing/IndexMap.h"
#include "runtime/sharing/PageSize.h"
#include "runtime/tree/KvTree.h"

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace deft::sharing {

/// The rows of a page table as a forest: a common beginning of several rows is one path. A *member* is a row
/// with a number of tokens; its path has these in order. Two members share a token if both are long enough
/// and have the same page at its place and at all places before it. So sharing may end inside a page.
///
/// Nothing is copied. Token t of a member lies at (first entry of its row) * page size + t in the table. The
/// location of a node is that of its first token in the row of one member below it, its *namer*. When a namer
/// leaves, another member replaces it, and its row is no longer read.
///
/// A new member descends from the root: it looks up the child with its next page and compares its row with
/// that of the child's namer until they differ. There the child is cut. So each shared page is compared once,
/// and pages after the first difference are not read at all. (Sorting rows compares them more often, by the
/// logarithm of their number. Hashes of prefixes read every row completely, and need a comparison to be
/// sure.) A node that ends inside a page has at most one child.
///
/// The tree is as small as possible: a node ends only where a member ends or members part.
///
/// With a *step* of more than one token, members share only whole multiples of it, counted from their
/// beginnings: every node begins at such a multiple, and a member's tokens after its last one form a leaf of
/// their own. So a member's length alone decides where its path may be cut, whoever else is there. A node may
/// then have several children with the same first page, so children are looked up by the pages of their first
/// step. (Later growth of a leaf is not compared: members that come to share more steps read them
/// separately.)
class PrefixForest {
public:
  explicit PrefixForest(PageSize pageSize, int step = 1) : pageSize_(pageSize), step_(step) {}

  const tree::KvTree &tree() const { return tree_; }
  PageSize pageSize() const { return pageSize_; }
  void setRanks(std::optional<tree::Ranks> ranks) { tree_.setRanks(std::move(ranks)); }

  /// Adds a row of `tokens` tokens whose pages begin at an entry of the table. In all functions `table` is
  /// the current table of all members, and is read only during the call.
  int insert(const int *table, std::int64_t firstEntry, int tokens);

  /// The contents of its row no longer matter.
  void remove(int member);

  /// Gives a member more tokens, in its old pages and the pages after these.
  void grow(const int *table, int member, int tokens);

  /// Sets the new place of a member's row. Call placeMoved() after the last move, before any comparison.
  void move(int member, std::int64_t firstEntry) { members_[index(member)].firstEntry = firstEntry; }
  void placeMoved();

  /// Adds a leaf of `tokens` tokens below the end of a member, in the slots after its own, for tokens that no
  /// member has yet. Returns the node. Remove all stand-ins before any other change.
  int addStandIn(int member, int tokens);
  void removeStandIns();
  std::int64_t standInTokens() const;

  /// All other calls drop the queries if they change the structure.
  void setQueries(std::span<const tree::Query> queries);

  /// Call it after the last change. True if anything but the growth of leaves has changed.
  bool settle();

  void clear();

  /// The place of a member's token in the table.
  std::int64_t locationIn(int member, int position) const {
    return members_[index(member)].firstEntry * pageSize_.tokens() + position;
  }
  std::int64_t firstEntry(int member) const { return members_[index(member)].firstEntry; }
  int tokens(int member) const { return members_[index(member)].tokens; }
  /// The last node of the member's path, which it contains completely.
  int endNode(int member) const { return members_[index(member)].node; }

  /// Checks all promises above, in a slow and plain way: for tests.
  support::Result<void> verify(const int *table) const;

private:
  struct Member {
    std::int64_t firstEntry = 0;
    int tokens = 0;
    int node = -1; ///< -1: the number is free
    int next = -1; ///< of the members with the same last node
    int previous = -1;
  };
  struct NodeFacts {
    int namer = -1;
    int firstEnd = -1; ///< first of the members that end here; -1: none
    int first = -1;    ///< the key under which its parent finds it: firstOf() of its row
  };

  static std::size_t index(int number) { return static_cast<std::size_t>(number); }
  static std::uint64_t childKey(int node, int first) {
    return static_cast<std::uint64_t>(node + 1) << 32 | static_cast<std::uint32_t>(first);
  }
  /// The page that contains token `done` of the row. With a step: a hash of the pages of that step, with few
  /// collisions.
  int firstOf(const int *row, int done) const;
  /// Whether the node has a whole step; otherwise it is never looked up.
  bool hasStep(int number) const { return node(number).tokens >= step_; }
  void enter(int parent, int child);
  void leave(int parent, int child);
  int childOf(const int *table, int parent, const Member &member, int done) const;
  const tree::Node &node(int number) const { return tree_.nodes()[index(number)]; }
  NodeFacts &facts(int number) { return facts_[index(number)]; }
  const NodeFacts &facts(int number) const { return facts_[index(number)]; }

  void beginEdit();
  void growFirstStep(const int *table, int member);
  void goDown(const int *table, int member, int from, int done);
  int addNode(const int *table, int parent, int member, int done);
  int cut(const int *table, int child, int tokens);
  int commonTokens(const int *row, const int *other, int from, int to) const;
  void linkEnd(int member, int node);
  void unlinkEnd(int member);
  void endAtNothing(int member);
  void leaveNothing();
  bool isIdle(int node) const;
  int joinToChild(int node);
  void nameAnew(int from, int left);
  void placeAtNamer(int node);

  PageSize pageSize_;
  int step_;
  tree::KvTree tree_;
  std::vector<NodeFacts> facts_; ///< for each node
  std::vector<Member> members_;
  std::vector<int> freeMembers_;
  IndexMap children_; ///< by childKey of a node and the `first` of its child
  std::vector<int> standIns_;
  int emptyNode_ = -1;    ///< a root without tokens, for members without tokens; -1: there are none
  bool isEdited_ = false; ///< since settle()
};

} // namespace deft::sharing
