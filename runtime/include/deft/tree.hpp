#pragma once

#include <deft/c/tree.h>
#include <deft/result.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The tree (or forest) of cached tokens, and the queries of a step.
namespace deft {

/// A node owns a stretch of consecutive tokens. Its path is its ancestors' tokens, then its own.
struct Node {
  static constexpr int kNotPlaced = DEFT_NOT_PLACED;

  int parent = DEFT_NO_NODE; ///< or DEFT_NO_NODE: a root
  int tokens = 0;
  int location = 0; ///< the place of its first token (see Tree::place), or kNotPlaced
  int depth = 0;    ///< a root has 0
  int position = 0; ///< of its first token on the path, counted from 0
};

/// A query sees the path to its node: all tokens of the ancestors and the first `position` of the node's own.
/// Queries of one node that end at consecutive tokens, in this order, are very cheap to plan: a new prompt,
/// or an append.
struct Query {
  static constexpr int kWhole = DEFT_WHOLE; ///< all of the node's tokens, including later ones

  int node = 0;
  int position = kWhole;
};

/// Consecutive tokens in the cache.
struct Stretch {
  int location = 0;
  int tokens = 0;
};

namespace detail {

inline std::int32_t positionOf(std::optional<int> position) { return position.value_or(DEFT_WHOLE); }

inline std::vector<deft_query> queriesOf(std::span<const Query> queries) {
  std::vector<deft_query> own;
  own.reserve(queries.size());
  for (const Query &query : queries)
    own.push_back({query.node, query.position});
  return own;
}

} // namespace detail

/// The tree of one decode step, and its changes between steps. Calls return numbers of nodes and queries. A
/// later node may reuse a pruned node's number. A call that fails changes nothing.
///
/// The tree holds no keys or values, only their places: write K and V of new tokens into your cache, at the
/// places that you (or a SequenceTree) chose, before the run that reads them.
///
/// For one thread at a time; several may read at once. Copies are independent.
class Tree {
public:
  Tree() : Tree(detail::filled<deft_tree *>(deft_tree_make).value()) {}
  /// Takes a handle of <deft/deft.h>.
  explicit Tree(deft_tree *handle) : handle_(handle, Destroy{}) {}
  Tree(const Tree &other) : Tree(copyOf(other)) {}
  Tree(Tree &&) noexcept = default;
  Tree &operator=(const Tree &other) { return *this = Tree(other); }
  Tree &operator=(Tree &&) noexcept = default;
  ~Tree() = default;

  /// Reads a tree that belongs to another handle; only that handle changes it.
  static Tree view(const deft_tree *tree) {
    Tree result(const_cast<deft_tree *>(tree));
    result.handle_.get_deleter().isOwner = false;
    return result;
  }

  /// Reads a tree file of `deftc`: {"format": "deftc-tree", "version": 1, "nodes": [...], "queries": [...]}.
  /// Without locations in the text, no node is placed.
  static Result<Tree> parse(std::string_view json) {
    const std::string own(json);
    return detail::made<Tree, deft_tree>([&](auto to) { return deft_tree_parse(own.c_str(), to); });
  }
  /// Writes the tree as such a text, without locations.
  std::string json() const {
    return detail::text([&](auto to) { return deft_tree_get_json(handle(), to); }).value();
  }

  // Building and growing. A node may be empty. A node with tokens must be placed before a plan is made; the
  // error of the plan names it otherwise.
  Result<int> addRoot(int tokens, int location = Node::kNotPlaced) {
    return detail::filled<int>([&](auto to) { return deft_tree_add_root(handle(), tokens, location, to); });
  }
  Result<int> addChild(int parent, int tokens, int location = Node::kNotPlaced) {
    return detail::filled<int>(
        [&](auto to) { return deft_tree_add_child(handle(), parent, tokens, location, to); });
  }
  /// Lets a leaf grow by tokens that follow its last one in the cache. Only leaves grow.
  Result<void> append(int leaf, int tokens = 1) {
    return detail::done(deft_tree_append(handle(), leaf, tokens));
  }
  /// Adds an empty branch that shares the path to `node` up to its first `position` tokens, by default all.
  /// If only part of a node is shared, the node is cut in two. Its number then means the second part, so it
  /// still means the same path; the first part gets a new number. The branch is not placed.
  Result<int> fork(int node, std::optional<int> position = std::nullopt) {
    return detail::filled<int>(
        [&](auto to) { return deft_tree_fork(handle(), node, detail::positionOf(position), to); });
  }
  /// Removes the node, all below it and their queries; the numbers of later queries move up.
  Result<void> prune(int node) { return detail::done(deft_tree_prune(handle(), node)); }
  /// Speculative decoding: the tokens from below `sequence` to the end of `last` become the end of
  /// `sequence`; everything else below `sequence` is removed, with all queries there. Returns the places of
  /// the accepted tokens, in path order: copy their K and V behind the sequence's last token before the next
  /// run.
  Result<std::vector<Stretch>> accept(int sequence, int last) {
    return detail::array<Stretch, deft_stretch>(
        [&](auto to, auto count) { return deft_tree_accept(handle(), sequence, last, to, count); },
        [](const deft_stretch &some) { return Stretch{some.location, some.tokens}; });
  }

  /// Sets the place of a node's first token; the others follow it. A location counts tokens in the run's page
  /// table: token t is in slot t % page_size of page pageTable[t / page_size]. In a contiguous cache it is
  /// the token's index. A node may begin inside a page, and two nodes may share one.
  Result<void> place(int node, int location) {
    return detail::done(deft_tree_place(handle(), node, location));
  }

  // The queries of the step. Row i of q, out and lse belongs to query i.
  Result<int> addQuery(int node, std::optional<int> position = std::nullopt) {
    return detail::filled<int>(
        [&](auto to) { return deft_tree_add_query(handle(), node, detail::positionOf(position), to); });
  }
  Result<void> removeQuery(int query) { return detail::done(deft_tree_remove_query(handle(), query)); }
  /// Replaces all queries. If they stay equal, a plan stays cheap to advance.
  Result<void> setQueries(std::span<const Query> queries) {
    const auto own = detail::queriesOf(queries);
    return detail::done(deft_tree_set_queries(handle(), own.data(), own.size()));
  }
  void clearQueries() { (void)deft_tree_clear_queries(handle()); }

  bool isAlive(int node) const { return deft_tree_is_alive(handle(), node) != 0; }
  /// The facts about a living node; all zeros for any other.
  Node node(int node) const {
    const auto known =
        detail::factsOf<deft_node>([&](auto to) { return deft_tree_get_node(handle(), node, to); });
    return {known.parent, known.tokens, known.location, known.depth, known.position};
  }
  /// The living nodes, parents before children, siblings in order of birth.
  std::vector<int> nodesInPreorder() const {
    return detail::array<int, std::int32_t>(
               [&](auto to, auto count) { return deft_tree_get_nodes(handle(), to, count); },
               [](std::int32_t node) { return node; })
        .value();
  }
  int queryCount() const { return deft_tree_query_count(handle()); }
  /// Node -1 if there is no such query.
  Query query(int query) const {
    deft_query known{DEFT_NO_NODE, 0};
    (void)deft_tree_get_query(handle(), query, &known);
    return {known.node, known.position};
  }
  /// How many tokens a query sees; its own position (q_pos in a spec) is one less.
  int pathTokens(int query) const { return deft_tree_path_tokens(handle(), query); }
  std::int64_t tokens() const { return deft_tree_tokens(handle()); } ///< over all nodes

  const deft_tree *handle() const { return handle_.get(); } ///< for <deft/deft.h>
  deft_tree *handle() { return handle_.get(); }

private:
  struct Destroy {
    bool isOwner = true;
    void operator()(deft_tree *tree) const {
      if (isOwner)
        deft_tree_destroy(tree);
    }
  };

  static deft_tree *copyOf(const Tree &other) {
    return detail::filled<deft_tree *>([&](auto to) { return deft_tree_copy(other.handle(), to); }).value();
  }

  std::unique_ptr<deft_tree, Destroy> handle_;
};

} // namespace deft
