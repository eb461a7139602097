#pragma once

#include "runtime/tree/KvTree.h"
#include "runtime/tree/PagedPool.h"
#include "runtime/tree/TreeEdit.h"

#include <optional>
#include <span>
#include <vector>

namespace deft::tree {

/// Consecutive tokens of a node.
struct NodeTokens {
  int node = 0;
  int first = 0; ///< of the node, from 0
  int tokens = 0;

  bool operator==(const NodeTokens &) const = default;
};

/// A tree whose tokens lie in a pool: what a decode loop drives. The operations are those of KvTree; each
/// gives or takes the memory that it needs, and keeps the nodes' locations. Some return copies, which the
/// caller makes in its cache (see PagedPool for when). A call that fails changes nothing.
class SequenceTree {
public:
  static support::Result<SequenceTree> make(const PoolOptions &options);

  const KvTree &tree() const { return tree_; }
  const PagedPool &pool() const { return pool_; }

  support::Result<int> addNode(int parent, int tokens);

  /// The guessed tokens of a step of speculative decoding, below `sequence`: a node for each, of one token,
  /// back to back in memory. parents[i] is an earlier token, or -1 for the sequence itself.
  support::Result<std::vector<int>> addTokenTree(int sequence, std::span<const int> parents);

  support::Result<std::vector<TokenCopy>> append(int leaf, int tokens);
  support::Result<int> split(int node, int position);
  support::Result<int> fork(int node, std::optional<int> position = std::nullopt);

  /// The pages that only the pruned nodes had are free again.
  support::Result<void> prune(int node);

  /// The copies bring the accepted tokens behind those of the sequence.
  support::Result<std::vector<TokenCopy>> accept(int sequence, int last);

  /// Follows a tree that lives elsewhere, as a workload's.
  support::Result<std::vector<TokenCopy>> apply(const TreeEdit &edit);

  support::Result<int> addQuery(int node, std::optional<int> position = std::nullopt) {
    return tree_.addQuery(node, position);
  }
  support::Result<void> setQueries(std::span<const Query> queries) { return tree_.setQueries(queries); }
  void clearQueries() { tree_.clearQueries(); }

  /// Tokens whose K and V follow from sparse attention differ from what full attention would have made of
  /// them: they are polluted until somebody computes them again. Branches share what they share of it, and
  /// copies take it along. New tokens are not polluted.
  support::Result<void> pollute(std::span<const NodeTokens> tokens);
  /// All that are, parents before children: in this order each can be computed from what is before it.
  std::vector<NodeTokens> polluted() const;
  support::Result<void> correct(std::span<const NodeTokens> tokens);

  /// Spreads the tokens over ranks (KvTree::setRanks).
  void setRanks(std::optional<Ranks> ranks) { tree_.setRanks(std::move(ranks)); }

  /// For who keeps a copy of the page table: from now on only later changes count as such.
  void markTableRead() { pool_.markTableRead(); }

private:
  explicit SequenceTree(PagedPool pool) : pool_(std::move(pool)) {}

  support::Result<std::vector<TokenCopy>> growRange(int node, int tokens);
  void setRange(int node, int range);
  void releaseDead();
  support::Result<void> checkTokens(std::span<const NodeTokens> tokens) const;
  void setPolluted(const NodeTokens &tokens, bool isPolluted);
  void copyPolluted(std::span<const TokenCopy> copies);
  void movePolluted(const Stretch &accepted, int toLocation);

  KvTree tree_;
  PagedPool pool_;
  std::vector<int> ranges_;      ///< of each node, -1: none
  std::vector<bool> isPolluted_; ///< of each slot of the cache; empty: none was ever
  std::vector<int> dying_;       ///< nodes that a call is about to remove
};

} // namespace deft::tree
