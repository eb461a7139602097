#pragma once

#include <deft/tree.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

/// For hosts without a cache manager of their own: a tree whose tokens lie in a pool of pages.
namespace deft {

struct PoolOptions {
  int pageSize = 16;      ///< Attention::pageSize(); 0: one contiguous cache
  std::int64_t pages = 0; ///< that K and V have room for; of a contiguous cache: tokens
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

/// A Tree that gives each node its places in the cache and takes them back: pages are shared by branches,
/// copied when one of them writes, and free again when the last branch ends. The bytes are the host's: it
/// writes K and V of new tokens (slot() says where), and makes the copies that a call returns, in their
/// order, before it writes anything.
///
/// Operations are those of Tree. A call that fails, also for lack of pages, changes nothing.
class DEFT_API SequenceTree {
public:
  static Result<SequenceTree> make(const PoolOptions &options);

  SequenceTree(SequenceTree &&) noexcept;
  SequenceTree &operator=(SequenceTree &&) noexcept;
  ~SequenceTree();

  /// For Plan and for looking; it lives as long as this object is not moved from.
  const Tree &tree() const;
  /// For Inputs::pageTable, until the next change; empty when contiguous. -1 where there is no page.
  std::span<const int> pageTable() const;
  /// Where token `index` (from 0) of a node lies; -1 for a token that is not there.
  std::int64_t slot(int node, int index) const;
  std::int64_t freePages() const;

  Result<int> addRoot(int tokens);
  Result<int> addChild(int parent, int tokens);
  /// The guessed tokens of a step of speculative decoding, below `sequence`: a node for each, of one token.
  /// parents[i] is an earlier token of the list, or -1 for the sequence itself.
  Result<std::vector<int>> addTokenTree(int sequence, std::span<const int> parents);
  Result<std::vector<TokenCopy>> append(int leaf, int tokens = 1);
  Result<int> fork(int node, std::optional<int> position = std::nullopt);
  Result<void> prune(int node);
  /// The copies bring the accepted tokens behind those of the sequence.
  Result<std::vector<TokenCopy>> accept(int sequence, int last);

  /// Tokens whose K and V follow from sparse attention (Runtime::runSparse) differ from what full attention
  /// would have made of them: they are polluted until somebody computes them again. A host says so after each
  /// step. Branches share what they share of it, and copies take it along; new tokens are not polluted.
  Result<void> pollute(std::span<const NodeTokens> tokens);
  /// All that are, parents before children: a prefill of a query for each of them, in this order, at position
  /// first + 1, first + 2, ... of its node, computes them with full attention. Their K and V go to where they
  /// lie (slot()).
  std::vector<NodeTokens> polluted() const;
  /// They were computed again.
  Result<void> correct(std::span<const NodeTokens> tokens);

  Result<int> addQuery(int node, std::optional<int> position = std::nullopt);
  Result<void> setQueries(std::span<const Query> queries);
  void clearQueries();

  struct Impl;
  const Impl &impl() const { return *impl_; } ///< for the library itself

private:
  explicit SequenceTree(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

} // namespace deft
