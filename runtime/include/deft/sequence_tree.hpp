#pragma once

#include <deft/c/selection.h>
#include <deft/c/sequence_tree.h>
#include <deft/tree.hpp>

/// For programs without a cache manager: a tree whose tokens lie in a pool of pages.
namespace deft {

struct PoolOptions {
  int pageSize = 16;      ///< Attention::pageSize(); 0: one contiguous cache
  std::int64_t pages = 0; ///< room of K and V in pages; contiguous: tokens
};

/// Tokens to copy in K and in V of every layer, from slot to slot. Slot s is place s % page_size of physical
/// page s / page_size (contiguous: the token's index), so in elements it lies at
///   s / page_size * strides.page + s % page_size * strides.token + kv_head * strides.head.
struct TokenCopy {
  std::int64_t from = 0;
  std::int64_t to = 0;
  int tokens = 0;
};

/// Consecutive tokens of a node.
struct NodeTokens {
  int node = 0;
  int first = 0; ///< of the node, from 0
  int tokens = 0;
};

/// A tree that assigns places in the cache. Branches share pages. A page is copied when a branch writes to a
/// shared one, and is free again when its last branch ends. You own the bytes: first make the copies that a
/// call returns, in their order, then write K and V of new tokens (slot() gives the place).
///
/// Operations are those of Tree. A call that fails, for example for lack of pages, changes nothing.
class SequenceTree {
public:
  static Result<SequenceTree> make(const PoolOptions &options) {
    deft_pool_options own{};
    own.size = sizeof own;
    own.pages = options.pages;
    own.page_size = options.pageSize;
    return detail::made<SequenceTree, deft_sequence_tree>(
        [&](auto to) { return deft_sequence_tree_make(&own, to); });
  }
  /// Takes a handle of <deft/deft.h>.
  explicit SequenceTree(deft_sequence_tree *handle)
      : handle_(handle), view_(Tree::view(deft_sequence_tree_get_tree(handle))) {}

  /// The tree for plans and for inspection; valid until this object is moved from.
  const Tree &tree() const { return view_; }
  /// The page table for Inputs::pageTable, valid until the next change. Empty if the cache is contiguous; -1
  /// for no page.
  std::span<const int> pageTable() const {
    const std::int32_t *entries = nullptr;
    std::size_t count = 0;
    (void)deft_sequence_tree_get_page_table(handle(), &entries, &count);
    return {entries, count};
  }
  /// The slot of token `index` (from 0) of a node; -1 if there is no such token.
  std::int64_t slot(int node, int index) const { return deft_sequence_tree_slot(handle(), node, index); }
  std::int64_t freePages() const { return deft_sequence_tree_free_pages(handle()); }

  Result<int> addRoot(int tokens) {
    return detail::filled<int>([&](auto to) { return deft_sequence_tree_add_root(handle(), tokens, to); });
  }
  Result<int> addChild(int parent, int tokens) {
    return detail::filled<int>(
        [&](auto to) { return deft_sequence_tree_add_child(handle(), parent, tokens, to); });
  }
  /// Adds the guessed tokens of a step of speculative decoding below `sequence`: one node of one token for
  /// each. parents[i] is an earlier token of the list, or -1 for the sequence itself.
  Result<std::vector<int>> addTokenTree(int sequence, std::span<const int> parents) {
    std::vector<int> nodes(parents.size());
    const auto added = detail::done(
        deft_sequence_tree_add_token_tree(handle(), sequence, parents.data(), parents.size(), nodes.data()));
    return added ? Result<std::vector<int>>(std::move(nodes)) : added.error();
  }
  Result<std::vector<TokenCopy>> append(int leaf, int tokens = 1) {
    return copies(
        [&](auto to, auto count) { return deft_sequence_tree_append(handle(), leaf, tokens, to, count); });
  }
  Result<int> fork(int node, std::optional<int> position = std::nullopt) {
    return detail::filled<int>(
        [&](auto to) { return deft_sequence_tree_fork(handle(), node, detail::positionOf(position), to); });
  }
  Result<void> prune(int node) { return detail::done(deft_sequence_tree_prune(handle(), node)); }
  /// The copies move the accepted tokens behind those of the sequence.
  Result<std::vector<TokenCopy>> accept(int sequence, int last) {
    return copies(
        [&](auto to, auto count) { return deft_sequence_tree_accept(handle(), sequence, last, to, count); });
  }

  /// K and V from sparse attention (Runtime::runSparse) differ from those of full attention: such tokens are
  /// polluted until you compute them again. Call this after each step. Branches share marks of shared tokens,
  /// and copies keep them; new tokens are not polluted.
  Result<void> pollute(std::span<const NodeTokens> tokens) {
    const auto own = tokensOf(tokens);
    return detail::done(deft_sequence_tree_pollute(handle(), own.data(), own.size()));
  }
  /// All polluted tokens, parents before children. To compute them with full attention, run a prefill with
  /// one query for each, in this order, at positions first + 1, first + 2, ... of its node, and write their K
  /// and V to their slots (slot()).
  std::vector<NodeTokens> polluted() const {
    return detail::array<NodeTokens, deft_node_tokens>(
               [&](auto to, auto count) { return deft_sequence_tree_get_polluted(handle(), to, count); },
               [](const deft_node_tokens &some) { return NodeTokens{some.node, some.first, some.tokens}; })
        .value();
  }
  /// Marks tokens as computed again.
  Result<void> correct(std::span<const NodeTokens> tokens) {
    const auto own = tokensOf(tokens);
    return detail::done(deft_sequence_tree_correct(handle(), own.data(), own.size()));
  }

  Result<int> addQuery(int node, std::optional<int> position = std::nullopt) {
    return detail::filled<int>([&](auto to) {
      return deft_sequence_tree_add_query(handle(), node, detail::positionOf(position), to);
    });
  }
  Result<void> setQueries(std::span<const Query> queries) {
    const auto own = detail::queriesOf(queries);
    return detail::done(deft_sequence_tree_set_queries(handle(), own.data(), own.size()));
  }
  void clearQueries() { (void)deft_sequence_tree_clear_queries(handle()); }

  const deft_sequence_tree *handle() const { return handle_.get(); } ///< for <deft/deft.h>
  deft_sequence_tree *handle() { return handle_.get(); }

private:
  template <typename Call> static Result<std::vector<TokenCopy>> copies(Call &&call) {
    return detail::array<TokenCopy, deft_token_copy>(call, [](const deft_token_copy &copy) {
      return TokenCopy{copy.from, copy.to, static_cast<int>(copy.tokens)};
    });
  }
  static std::vector<deft_node_tokens> tokensOf(std::span<const NodeTokens> tokens) {
    std::vector<deft_node_tokens> own;
    for (const NodeTokens &some : tokens)
      own.push_back({some.node, some.first, some.tokens});
    return own;
  }

  detail::Owned<deft_sequence_tree, deft_sequence_tree_destroy> handle_;
  Tree view_;
};

} // namespace deft
