#pragma once

#include "compiler/support/Result.h"
#include "runtime/tree/Ranks.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace deft::tree {

/// A node owns consecutive tokens. The path to a node is its ancestors' tokens, then its own.
struct Node {
  int parent = -1; ///< -1: a root
  int tokens = 0;  ///< may be 0; 0 in a dead node
  /// Place of the first token in the page table, in tokens (contiguous: in the cache), or KvTree::kNotPlaced.
  int location = 0;
  // Derived:
  int depth = 0;    ///< root 0
  int position = 0; ///< kv_pos of the first token: the number of its ancestors' tokens
  int firstChild = -1;
  int nextSibling = -1; ///< in order of birth; of a root: the next root
  bool isAlive = true;

  bool operator==(const Node &) const = default;
};

/// A query belongs to a node and sees the path to it: all tokens of the ancestors and the first `position`
/// tokens of the node. With the bound `path` a spec may also show it the other tokens of the node.
struct Query {
  static constexpr int kWhole = -1; ///< all of the node's tokens, including later ones

  int node = 0;
  int position = kWhole;

  bool operator==(const Query &) const = default;
};

/// The queries, sorted so that the readers of any token are one interval: by (preorder of the node, position,
/// caller's index). For dead nodes all three numbers are 0.
struct QueryOrder {
  std::vector<int> callerIndex; ///< for each query of the order
  std::vector<int> ownBegin;    ///< for each node: its first own query in the order
  std::vector<int> ownEnd;      ///< for each node: the end of its own queries
  std::vector<int> subtreeEnd;  ///< for each node: the end of its subtree's queries, which begin at ownBegin
};

/// Tokens of an accepted branch, at the place where they were when it was accepted.
struct Stretch {
  int location = 0;
  int tokens = 0;

  bool operator==(const Stretch &) const = default;
};

/// When to count the depths of the nodes below a cut, which takes time linear in the subtree.
enum class Depths {
  Now,
  Later, ///< not at all: after many cuts call KvTree::countDepths once
};

/// The KV tree (a forest) of one decode step, and its changes between steps. Nodes and queries keep their
/// numbers. A new node may take the number of a pruned one, so a parent may have a larger number than its
/// child: walk the tree through its links.
///
/// A failed call leaves the tree unchanged. A successful one increases the generation, so a plan can see that
/// it is stale. The growth of leaves does not change `structureGeneration()`.
class KvTree {
public:
  /// The limit of a node's numbers and of positions on a path, so that all fit into an int.
  static constexpr int kMaxTokens = 1 << 30;
  static constexpr int kMaxNodes = 1 << 24;
  static constexpr int kMaxQueries = 1 << 24;
  /// Location of a node that is not placed (see checkPlaced).
  static constexpr int kNotPlaced = -1;

  /// Adds a node below `parent` (-1: a root) and returns its index. The parent must already be in the tree,
  /// so no call can make a cycle.
  support::Result<int> addNode(int parent, int tokens, int location = 0);

  /// Lets a leaf grow. An inner node cannot: the tokens below it were computed from its tokens.
  support::Result<void> append(int leaf, int tokens);

  /// Cuts a node in two before its token `position`. Returns the new node, which holds the first tokens. The
  /// rest keeps the index, the children, and the queries that see some of it. So an index means the same path
  /// before and after.
  support::Result<int> split(int node, int position, Depths depths = Depths::Now);

  /// Undoes a split: a node without queries becomes the beginning of its only child, whose first token must
  /// lie directly behind its last one. The child keeps its index; the node's index is free.
  support::Result<void> join(int node, Depths depths = Depths::Now);

  /// Counts the depths of all nodes, in one walk.
  void countDepths();

  /// Adds an empty branch that shares the path to `node` up to its first `position` tokens (all if absent)
  /// and returns it. Splits the node if needed. With position 0 the branch is a sibling of the node. The
  /// branch is not placed.
  support::Result<int> fork(int node, std::optional<int> position = std::nullopt);

  /// Removes the node, its subtree and their queries; the numbers of later queries move up.
  support::Result<void> prune(int node);

  /// Speculative decoding: the tokens from below `sequence` to the end of `last` become the end of
  /// `sequence`; everything else below `sequence` is removed, including its queries. Returns the places of
  /// the accepted tokens, in path order: the caller moves them behind those of the sequence.
  support::Result<std::vector<Stretch>> accept(int sequence, int last);

  /// Removes everything; numbers start at 0 again. The generations continue, so no plan of the old tree
  /// passes for a plan of the new one.
  void clear();

  /// The result that append or accept would give, without a change; checkAccept returns the number of tokens.
  support::Result<void> checkAppend(int leaf, int tokens) const;
  support::Result<int> checkAccept(int sequence, int last) const;

  /// Sets the location of the node's tokens.
  support::Result<void> place(int node, int location);

  /// Makes all nodes unplaced.
  void forgetPlaces();

  /// Adds a query and returns its index. Without `position` it sees all of the node's tokens, now and later.
  support::Result<int> addQuery(int node, std::optional<int> position = std::nullopt);

  /// The numbers of later queries move up by one.
  support::Result<void> removeQuery(int query);

  /// Replaces all queries. If they equal the old ones, the structure does not change.
  support::Result<void> setQueries(std::span<const Query> queries);

  void clearQueries();

  /// Spreads the tokens over ranks: plans then read only this rank's tokens. None: all tokens lie here. Later
  /// changes of the tree keep it.
  void setRanks(std::optional<Ranks> ranks);
  /// Null: all tokens lie here.
  const Ranks *ranks() const { return ranks_.get(); }

  /// May contain dead entries, which have no tokens.
  const std::vector<Node> &nodes() const { return nodes_; }
  const std::vector<Query> &queries() const { return queries_; }
  bool isAlive(int node) const {
    return node >= 0 && node < static_cast<int>(nodes_.size()) && nodes_[node].isAlive;
  }
  int aliveNodes() const { return static_cast<int>(nodes_.size() - free_.size()); }
  std::int64_t tokens() const { return tokens_; } ///< over all nodes
  int firstRoot() const { return firstRoot_; }    ///< -1: the tree is empty

  /// The node after `node` in preorder, -1 after the last. From firstRoot() on this visits every living node:
  /// parents before children, siblings in order of birth. It does not recurse, so depth is no limit.
  int nextInPreorder(int node) const {
    return nodes_[node].firstChild >= 0 ? nodes_[node].firstChild : nextAfterSubtree(node);
  }
  int nextAfterSubtree(int node) const {
    while (node >= 0 && nodes_[node].nextSibling < 0)
      node = nodes_[node].parent;
    return node < 0 ? -1 : nodes_[node].nextSibling;
  }

  std::uint64_t generation() const { return generation_; }

  /// Increased by every change except the growth of leaves. If it has not changed, nodes and queries are the
  /// same; only leaves may be longer, and kWhole queries then see more of them.
  std::uint64_t structureGeneration() const { return structureGeneration_; }

  /// How many of its node's tokens the query sees.
  int seenTokens(const Query &query) const {
    return query.position == Query::kWhole ? nodes_[query.node].tokens : query.position;
  }
  /// Length of the path that a query sees; its q_pos is one less.
  int pathTokens(const Query &query) const { return nodes_[query.node].position + seenTokens(query); }

  /// The end of its path at the end of its node, as a position.
  int pathEnd(const Query &query) const { return nodes_[query.node].position + nodes_[query.node].tokens; }

  QueryOrder queryOrder() const;

private:
  struct Links { ///< used only by edits
    int lastChild = -1;
    int previousSibling = -1;
    int ownQueries = 0;
  };

  int takeIndex();
  support::Result<void> checkAlive(int node, const char *what) const;
  support::Result<void> checkQuery(std::size_t index, int node, std::optional<int> position) const;
  void linkLast(int node, int parent);
  void unlink(int node);
  void replaceInSiblings(int old, int by);
  void addToDepths(int subtree, int more);
  int removeSubtree(int node);
  void dropQueriesOfDead();
  void structureChanged();

  std::vector<Node> nodes_;
  std::vector<Links> links_;
  std::vector<int> free_; ///< dead indices; the last one is reused next
  std::vector<Query> queries_;
  std::shared_ptr<const Ranks> ranks_; ///< copies of the tree share it
  std::int64_t tokens_ = 0;
  int firstRoot_ = -1;
  int lastRoot_ = -1;
  std::uint64_t generation_ = 0;
  std::uint64_t structureGeneration_ = 0;
};

} // namespace deft::tree
