#pragma once

#include <deft/result.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Who shares what: the tree (a forest) of cached tokens, and the queries of a step.
namespace deft {

/// A node owns a stretch of consecutive tokens. Its path is its ancestors' tokens, then its own.
struct Node {
  static constexpr int kNotPlaced = -1;

  int parent = -1; ///< -1: a root
  int tokens = 0;
  int location = 0; ///< where its first token lies (see Tree::place), or kNotPlaced
  int depth = 0;    ///< a root has 0
  int position = 0; ///< of its first token on the path, counted from 0
};

/// A query sees the path to its node: all tokens of the ancestors and the first `position` of the node's own.
/// Queries of a node that end at consecutive tokens, in this order, cost a plan next to nothing: a prompt
/// that comes in, or an append.
struct Query {
  static constexpr int kWhole = -1; ///< all of the node's tokens, also those that it gains later

  int node = 0;
  int position = kWhole;
};

/// Tokens that lie side by side.
struct Stretch {
  int location = 0;
  int tokens = 0;
};

/// The tree of one decode step, and what happens to it between steps. Nodes and queries are named by the
/// numbers that the calls return. A pruned node's number is given to a later node. A call that fails changes
/// nothing.
///
/// The tree holds no keys or values, only where they lie: the host writes K and V of new tokens into its
/// cache, at the places that it (or a PagedPool) chose, before the run that reads them.
///
/// For one thread at a time; several may read at once. Copies are independent.
class DEFT_API Tree {
public:
  Tree();
  Tree(const Tree &);
  Tree(Tree &&) noexcept;
  Tree &operator=(const Tree &);
  Tree &operator=(Tree &&) noexcept;
  ~Tree();

  /// Reads what `deftc` reads: {"format": "deftc-tree", "version": 1, "nodes": [...], "queries": [...]}.
  /// Where the text has no locations, no node is placed.
  static Result<Tree> parse(std::string_view json);
  std::string json() const; ///< without locations

  // Building and growing. A node may be empty. One that has tokens must be placed before a plan is made: that
  // would be an error, which names the node.
  Result<int> addRoot(int tokens, int location = Node::kNotPlaced);
  Result<int> addChild(int parent, int tokens, int location = Node::kNotPlaced);
  /// Lets a leaf grow by tokens that follow its last one in the cache. Only leaves grow.
  Result<void> append(int leaf, int tokens = 1);
  /// An empty branch that shares the path to `node` up to its first `position` tokens, all of them by
  /// default. A node that is shared in part is cut in two; its number then stands for the second part, so
  /// that it still means the same path, and the first part gets a new number. The branch is not placed.
  Result<int> fork(int node, std::optional<int> position = std::nullopt);
  /// Removes the node, all below it and their queries; the numbers of later queries move up.
  Result<void> prune(int node);
  /// Speculative decoding: the tokens from below `sequence` to the end of `last` become the end of
  /// `sequence`; everything else below `sequence` goes, with all queries there. Gives where the accepted
  /// tokens lie, in path order: copy their K and V behind the sequence's last token before the next run.
  Result<std::vector<Stretch>> accept(int sequence, int last);

  /// Says where a node's first token lies; the others follow it. A location counts tokens in the page table
  /// that the run is given: token t is in slot t % page_size of page pageTable[t / page_size]. In a
  /// contiguous cache it is the token's index. A node may begin inside a page, and two nodes may share one.
  Result<void> place(int node, int location);

  // The queries of the step. Row i of q, out and lse belongs to query i.
  Result<int> addQuery(int node, std::optional<int> position = std::nullopt);
  Result<void> removeQuery(int query);
  /// Replaces all of them; the same ones as before keep a plan cheap to advance.
  Result<void> setQueries(std::span<const Query> queries);
  void clearQueries();

  bool isAlive(int node) const;
  /// What is known of a living node; all zeros of another.
  Node node(int node) const;
  /// The living nodes, parents before children, siblings in order of birth.
  std::vector<int> nodesInPreorder() const;
  int queryCount() const;
  Query query(int query) const;
  /// How many tokens a query sees; its own position (q_pos in a spec) is one less.
  int pathTokens(int query) const;
  std::int64_t tokens() const; ///< of all nodes

  struct Impl;
  const Impl &impl() const { return *impl_; } ///< for the library itself, as is mutableImpl()
  Impl &mutableImpl() { return *impl_; }

private:
  std::unique_ptr<Impl> impl_;
};

} // namespace deft
