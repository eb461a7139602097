#pragma once

#include "compiler/support/Result.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace deft::tree {

/// A node owns a stretch of consecutive tokens; the path to a node is its ancestors' tokens, then its own.
struct Node {
  int parent = -1;  ///< a smaller index, or -1 for a root
  int tokens = 0;   ///< may be 0
  int location = 0; ///< place of the first token in the page table, in tokens (contiguous: in the cache)
  // Derived:
  int depth = 0;    ///< root 0
  int position = 0; ///< kv_pos of the first token: the tokens of all ancestors
};

/// A query hangs on a node and sees the path to it: all tokens of the ancestors and the first
/// `position` tokens of the node itself.
struct Query {
  int node = 0;
  int position = 0;
};

/// The queries in the order in which every stretch of tokens is read by one interval of them: by
/// (preorder of the node, position, caller's index).
struct QueryOrder {
  std::vector<int> callerIndex; ///< of each query of the order
  std::vector<int> ownBegin;    ///< of each node: its first own query in the order
  std::vector<int> ownEnd;      ///< of each node: past its last own query
  std::vector<int> subtreeEnd; ///< of each node: past the last query of its subtree, which begins at ownBegin
};

/// The KV tree (a forest) of one decode step. Nodes and queries keep the caller's numbering. A changing
/// call that fails leaves the tree as it was; one that succeeds bumps the generation, by which a plan
/// tells whether it is stale.
class KvTree {
public:
  /// All of a node's numbers stay below this, as do the positions of a path: they travel as int.
  static constexpr int kMaxTokens = 1 << 30;
  static constexpr int kMaxNodes = 1 << 24;
  static constexpr int kMaxQueries = 1 << 24;

  /// Adds a node below `parent` (-1: a root) and returns its index. Fails on a parent that is not in the
  /// tree yet: a parent stands before its children, so cycles cannot be said.
  support::Result<int> addNode(int parent, int tokens, int location = 0);

  /// Adds a query and returns its index. No `position` means all of the node's tokens.
  support::Result<int> addQuery(int node, std::optional<int> position = std::nullopt);

  /// Says where the node's tokens lie.
  support::Result<void> place(int node, int location);

  void clearQueries();

  const std::vector<Node> &nodes() const { return nodes_; }
  const std::vector<Query> &queries() const { return queries_; }
  std::uint64_t generation() const { return generation_; }

  /// Length of the path that a query sees; its q_pos is one less.
  int pathTokens(const Query &query) const { return nodes_[query.node].position + query.position; }

  QueryOrder queryOrder() const;

private:
  std::vector<Node> nodes_;
  std::vector<Query> queries_;
  std::uint64_t generation_ = 0;
};

} // namespace deft::tree
