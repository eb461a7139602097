#pragma once

#include "compiler/support/Result.h"
#include "runtime/tree/Ranks.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace deft::tree {

/// A node owns a stretch of consecutive tokens; the path to a node is its ancestors' tokens, then its own.
struct Node {
  int parent = -1; ///< -1: a root
  int tokens = 0;  ///< may be 0; 0 in a dead node
  /// Place of the first token in the page table, in tokens (contiguous: in the cache), or KvTree::kNotPlaced.
  int location = 0;
  // Derived:
  int depth = 0;    ///< root 0
  int position = 0; ///< kv_pos of the first token: the tokens of all ancestors
  int firstChild = -1;
  int nextSibling = -1; ///< in order of birth; of a root: the next root
  bool isAlive = true;

  bool operator==(const Node &) const = default;
};

/// A query hangs on a node and sees the path to it: all tokens of the ancestors and the first
/// `position` tokens of the node itself. Where a spec says `path` it may see the others of its node, too.
struct Query {
  static constexpr int kWhole = -1; ///< all of the node's tokens, also those that it gains later

  int node = 0;
  int position = kWhole;

  bool operator==(const Query &) const = default;
};

/// The queries in the order in which every stretch of tokens is read by one interval of them: by
/// (preorder of the node, position, caller's index). Of dead nodes, all three numbers are 0.
struct QueryOrder {
  std::vector<int> callerIndex; ///< of each query of the order
  std::vector<int> ownBegin;    ///< of each node: its first own query in the order
  std::vector<int> ownEnd;      ///< of each node: past its last own query
  std::vector<int> subtreeEnd; ///< of each node: past the last query of its subtree, which begins at ownBegin
};

/// Tokens of an accepted branch, where they lay when they were accepted.
struct Stretch {
  int location = 0;
  int tokens = 0;

  bool operator==(const Stretch &) const = default;
};

/// When a cut of the tree counts the depths of the nodes below it, which takes time for the subtree.
enum class Depths {
  Now,
  Later, ///< not at all: who makes many cuts calls KvTree::countDepths once, behind the last of them
};

/// The KV tree (a forest) of one decode step, and what happens to it between steps. Nodes and queries keep
/// the caller's numbering; the number of a pruned node is given to a later one, so in a tree that has
/// lived a parent may have the larger number: walks go through the links.
///
/// A call that fails leaves the tree as it was. One that succeeds bumps the generation, by which a plan
/// tells whether it is stale. `structureGeneration()` stays where only leaves grew.
class KvTree {
public:
  /// All of a node's numbers stay below this, as do the positions of a path: they travel as int.
  static constexpr int kMaxTokens = 1 << 30;
  static constexpr int kMaxNodes = 1 << 24;
  static constexpr int kMaxQueries = 1 << 24;
  /// Location of a node that is not placed (see checkPlaced).
  static constexpr int kNotPlaced = -1;

  /// Adds a node below `parent` (-1: a root) and returns its index. Fails on a parent that is not in the
  /// tree yet: a parent is born before its children, so cycles cannot be said.
  support::Result<int> addNode(int parent, int tokens, int location = 0);

  /// Lets a leaf grow. Inner nodes do not: the tokens below them were computed from what is there.
  support::Result<void> append(int leaf, int tokens);

  /// Cuts a node in two, between its first `position` tokens and the rest, and returns the new node, which
  /// holds the first ones. The rest keeps the index, the children and the queries that see some of it: an
  /// index stands for the path to the end of its node, before and after.
  support::Result<int> split(int node, int position, Depths depths = Depths::Now);

  /// Takes a split back: a node without queries becomes the beginning of its only child, whose first token
  /// must lie right behind its last one. The child keeps its index, the node's is free.
  support::Result<void> join(int node, Depths depths = Depths::Now);

  /// Of all nodes, in one walk.
  void countDepths();

  /// Adds an empty branch that shares the path to `node` up to its first `position` tokens (all of them
  /// when absent), splitting the node where needed, and returns it. At 0 it hangs beside the node. It is not
  /// placed.
  support::Result<int> fork(int node, std::optional<int> position = std::nullopt);

  /// Removes the node, all below it and their queries; later queries move up.
  support::Result<void> prune(int node);

  /// Speculative decoding: the tokens on the path from below `sequence` to the end of `last` become the
  /// end of `sequence`, and everything below `sequence` goes, its queries too. Returns where the accepted
  /// tokens lie, in path order: the caller moves them behind those of the sequence.
  support::Result<std::vector<Stretch>> accept(int sequence, int last);

  /// Removes everything; numbers are given from 0 again. The generations go on, so that no plan of what was
  /// is taken for one of what comes.
  void clear();

  /// What append and accept would say, without doing it; how many tokens would be accepted.
  support::Result<void> checkAppend(int leaf, int tokens) const;
  support::Result<int> checkAccept(int sequence, int last) const;

  /// Says where the node's tokens lie.
  support::Result<void> place(int node, int location);

  /// No node is placed any more.
  void forgetPlaces();

  /// Adds a query and returns its index. No `position` means all of the node's tokens, now and later.
  support::Result<int> addQuery(int node, std::optional<int> position = std::nullopt);

  /// Later queries move up by one.
  support::Result<void> removeQuery(int query);

  /// Replaces all queries. The same ones as before leave the structure as it is.
  support::Result<void> setQueries(std::span<const Query> queries);

  void clearQueries();

  /// Spreads the tokens over ranks: plans then read what lies on this one. None: all lies here. The tree
  /// keeps it over every change.
  void setRanks(std::optional<Ranks> ranks);
  /// Null: all lies here.
  const Ranks *ranks() const { return ranks_.get(); }

  /// May hold dead entries (of no tokens), between the living.
  const std::vector<Node> &nodes() const { return nodes_; }
  const std::vector<Query> &queries() const { return queries_; }
  bool isAlive(int node) const {
    return node >= 0 && node < static_cast<int>(nodes_.size()) && nodes_[node].isAlive;
  }
  int aliveNodes() const { return static_cast<int>(nodes_.size() - free_.size()); }
  std::int64_t tokens() const { return tokens_; } ///< of all nodes
  int firstRoot() const { return firstRoot_; }    ///< -1: no node at all

  /// The node after `node` in preorder, -1 after the last. From firstRoot() on: every living node, parents
  /// before children, siblings in order of birth, and no recursion whatever the depth.
  int nextInPreorder(int node) const {
    return nodes_[node].firstChild >= 0 ? nodes_[node].firstChild : nextAfterSubtree(node);
  }
  int nextAfterSubtree(int node) const {
    while (node >= 0 && nodes_[node].nextSibling < 0)
      node = nodes_[node].parent;
    return node < 0 ? -1 : nodes_[node].nextSibling;
  }

  std::uint64_t generation() const { return generation_; }

  /// Bumped by every change but the growth of leaves: while it stays, the same nodes and queries are where
  /// they were, and only the token counts of leaves (and what kWhole queries of them see) are larger.
  std::uint64_t structureGeneration() const { return structureGeneration_; }

  /// How many of its node's tokens the query sees.
  int seenTokens(const Query &query) const {
    return query.position == Query::kWhole ? nodes_[query.node].tokens : query.position;
  }
  /// Length of the path that a query sees; its q_pos is one less.
  int pathTokens(const Query &query) const { return nodes_[query.node].position + seenTokens(query); }

  /// Past the last position of its path: that of the end of its node.
  int pathEnd(const Query &query) const { return nodes_[query.node].position + nodes_[query.node].tokens; }

  QueryOrder queryOrder() const;

private:
  struct Links { ///< what only editing needs
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
  std::vector<int> free_; ///< dead indices, the next to be given last
  std::vector<Query> queries_;
  std::shared_ptr<const Ranks> ranks_; ///< copies of the tree share it
  std::int64_t tokens_ = 0;
  int firstRoot_ = -1;
  int lastRoot_ = -1;
  std::uint64_t generation_ = 0;
  std::uint64_t structureGeneration_ = 0;
};

} // namespace deft::tree
