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

/// Rows of a page table as a forest: what several rows begin with is one path of it. A *member* is a row with
/// so many tokens; its path has them in order. Two members share a token where they have the same page at the
/// same place, and did at all places before, and both are long enough: so sharing may end inside a page.
///
/// Nothing is copied. Token t of a member lies at (first entry of its row) * page size + t of the table, and
/// a node's location is that of its first token in the row of one member that has it, its *namer*, which is
/// below it at any time. When a namer leaves, another one takes its place, and its row is not read any more.
///
/// A member goes down from the root: the child with its next page is looked up, and its row is compared with
/// that of the child's namer until they differ, where the child is cut. So each page that is shared is
/// compared once, and what is behind the first difference is not read at all. (Sorting the rows compares
/// them by the logarithm of their number as often; hashes of prefixes read all of every row, and must be
/// compared to be sure.) Below a node that ends inside a page there is at most one child.
///
/// The tree is kept as small as it can be: where nobody ends and no two go different ways, no node ends.
///
/// With a *step* of more than one token members share whole multiples of it alone, counted from their
/// beginnings: all nodes begin at one, and what a member has behind the last one is a leaf of its own. So
/// where a member's path may be cut is said by its length, whoever else is there. Below a node there may then
/// be several children with the same first page, so a child is looked up by the pages of its first step.
/// (What a leaf grows by behind that is compared with nothing: of members that come to have more steps in
/// common later on each may read these.)
class PrefixForest {
public:
  explicit PrefixForest(PageSize pageSize, int step = 1) : pageSize_(pageSize), step_(step) {}

  const tree::KvTree &tree() const { return tree_; }
  PageSize pageSize() const { return pageSize_; }
  void setRanks(std::optional<tree::Ranks> ranks) { tree_.setRanks(std::move(ranks)); }

  /// Adds a row of so many tokens, whose pages begin at an entry of the table. `table` is, here and
  /// elsewhere, the table as it is now: of all members, and only for the call.
  int insert(const int *table, std::int64_t firstEntry, int tokens);

  /// What its row holds does not matter any more.
  void remove(int member);

  /// Says that a member has more tokens, in the pages that it had and those behind them.
  void grow(const int *table, int member, int tokens);

  /// Says where a member's row is now; placeMoved() follows the last of them, before anything is compared.
  void move(int member, std::int64_t firstEntry) { members_[index(member)].firstEntry = firstEntry; }
  void placeMoved();

  /// Adds a leaf of so many tokens below the end of a member, for what is nobody's yet, in the slots behind
  /// its own; gives the node. All of them are to be taken away before anything else is changed.
  int addStandIn(int member, int tokens);
  void removeStandIns();
  std::int64_t standInTokens() const;

  /// Other calls than these take the queries away where they change the structure.
  void setQueries(std::span<const tree::Query> queries);

  /// Behind the last change: true where there have been other changes than growing leaves.
  bool settle();

  void clear();

  /// Where a token of the member's row lies in the table.
  std::int64_t locationIn(int member, int position) const {
    return members_[index(member)].firstEntry * pageSize_.tokens() + position;
  }
  std::int64_t firstEntry(int member) const { return members_[index(member)].firstEntry; }
  int tokens(int member) const { return members_[index(member)].tokens; }
  /// The node that the member's path ends with, whole.
  int endNode(int member) const { return members_[index(member)].node; }

  /// Whether everything is as promised, by slow and plain means: for tests.
  support::Result<void> verify(const int *table) const;

private:
  struct Member {
    std::int64_t firstEntry = 0;
    int tokens = 0;
    int node = -1; ///< -1: the number is free
    int next = -1; ///< of those that end with the same node
    int previous = -1;
  };
  struct NodeFacts {
    int namer = -1;
    int firstEnd = -1; ///< of the members that end here; -1: none
    int first = -1;    ///< what its parent finds it by: firstOf() its row
  };

  static std::size_t index(int number) { return static_cast<std::size_t>(number); }
  static std::uint64_t childKey(int node, int first) {
    return static_cast<std::uint64_t>(node + 1) << 32 | static_cast<std::uint32_t>(first);
  }
  /// The page of the row that token `done` lies in; with a step a number that the pages of the step from
  /// there on give, as others seldom do.
  int firstOf(const int *row, int done) const;
  /// Whether the node has a whole step; else nobody looks it up.
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
  std::vector<NodeFacts> facts_; ///< of each node
  std::vector<Member> members_;
  std::vector<int> freeMembers_;
  IndexMap children_; ///< childKey of a node and the `first` of a child of it
  std::vector<int> standIns_;
  int emptyNode_ = -1;    ///< a root without tokens, for members without any; -1: there are none
  bool isEdited_ = false; ///< since settle()
};

} // namespace deft::sharing
