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
  int first = 0; ///< number in the node, from 0
  int tokens = 0;

  bool operator==(const NodeTokens &) const = default;
};

/// A tree whose tokens lie in a pool, for decode loops. Its operations are those of KvTree, and each also
/// allocates or frees memory and keeps the nodes' locations up to date. The caller makes the copies that some
/// of them return (PagedPool says when). A failed call changes nothing.
class SequenceTree {
public:
  static support::Result<SequenceTree> make(const PoolOptions &options);

  const KvTree &tree() const { return tree_; }
  const PagedPool &pool() const { return pool_; }

  support::Result<int> addNode(int parent, int tokens);

  /// The guessed tokens of one step of speculative decoding, below `sequence`: a node for each token,
  /// consecutive in memory. parents[i] is an earlier token, or -1 for the sequence itself.
  support::Result<std::vector<int>> addTokenTree(int sequence, std::span<const int> parents);

  support::Result<std::vector<TokenCopy>> append(int leaf, int tokens);
  support::Result<int> split(int node, int position);
  support::Result<int> fork(int node, std::optional<int> position = std::nullopt);

  /// Frees the pages that only the pruned nodes used.
  support::Result<void> prune(int node);

  /// The copies move the accepted tokens behind those of the sequence.
  support::Result<std::vector<TokenCopy>> accept(int sequence, int last);

  /// Repeats an edit of another tree, such as a workload's.
  support::Result<std::vector<TokenCopy>> apply(const TreeEdit &edit);

  support::Result<int> addQuery(int node, std::optional<int> position = std::nullopt) {
    return tree_.addQuery(node, position);
  }
  support::Result<void> setQueries(std::span<const Query> queries) { return tree_.setQueries(queries); }
  void clearQueries() { tree_.clearQueries(); }

  /// A token is polluted if its K and V were computed with sparse attention, so they differ from the results
  /// of full attention, until correct() marks it as computed again. Branches share the marks of shared
  /// tokens, and copies carry them along. New tokens are not polluted.
  support::Result<void> pollute(std::span<const NodeTokens> tokens);
  /// All polluted tokens, parents before children: an order in which they can be computed again.
  std::vector<NodeTokens> polluted() const;
  support::Result<void> correct(std::span<const NodeTokens> tokens);

  /// Distributes the tokens over ranks (KvTree::setRanks).
  void setRanks(std::optional<Ranks> ranks) { tree_.setRanks(std::move(ranks)); }

  /// For callers that keep a copy of the page table: only later changes count from now on.
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
  std::vector<int> ranges_;      ///< of each node; -1: none
  std::vector<bool> isPolluted_; ///< for each slot of the cache; empty: none ever was
  std::vector<int> dying_;       ///< nodes that a call is about to remove
};

} // namespace deft::tree
