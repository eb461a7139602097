#pragma once

#include <deft/c/ranks.h>
#include <deft/paged_batch.hpp>
#include <deft/sequence_tree.hpp>
#include <deft/tree.hpp>

#include <span>
#include <vector>

/// One tree over the caches of several ranks (GPUs, processes): which rank holds which tokens.
///
///   deft::setRanks(tree, {.count = 4, .rank = rank, .unit = 16}).value(); // interleaved
///   auto plan = deft::Plan::make(attention, tree).value();                // reads only its own tokens
///   runtime.run(attention, plan, inputs, {.out = part, .lse = partLse}).value();
///   peers.merge(shape, {part, partLse}, 0, shape.heads, {out}).value();   // peers.hpp
namespace deft {

enum class RankLayout : deft_rank_layout {
  /// Location x lies on rank (x / unit) mod count, there at x / (unit * count) * unit + x mod unit. A page of
  /// the tree consists of one page on each rank, and all ranks have one page table.
  Interleaved = DEFT_RANKS_INTERLEAVED,
  /// The page at location x lies on rank holders[x / unit], there at x; `unit` is the page size.
  ByPage = DEFT_RANKS_BY_PAGE,
  /// A node lies on rank holders[node], there at its location.
  ByNode = DEFT_RANKS_BY_NODE,
};

struct Ranks {
  static constexpr int kNoHolder = DEFT_NO_HOLDER; ///< of pages and nodes without tokens

  int count = 1; ///< of all ranks
  int rank = 0;  ///< this one
  RankLayout layout = RankLayout::Interleaved;
  int unit = 1; ///< tokens
  std::span<const int> holders = {};
};

namespace detail {

inline deft_ranks ranksOf(const Ranks &of) {
  deft_ranks own{};
  own.size = sizeof own;
  own.count = of.count;
  own.rank = of.rank;
  own.layout = static_cast<deft_rank_layout>(of.layout);
  own.unit = of.unit;
  own.holders = of.holders.empty() ? nullptr : of.holders.data();
  own.holder_count = of.holders.size();
  return own;
}

} // namespace detail

/// Plans of the tree then read only this rank's tokens (see <deft/c/ranks.h>).
inline Result<void> setRanks(Tree &tree, const Ranks &ranks) {
  const deft_ranks own = detail::ranksOf(ranks);
  return detail::done(deft_tree_set_ranks(tree.handle(), &own));
}
/// All tokens lie on this rank again.
inline Result<void> clearRanks(Tree &tree) {
  return detail::done(deft_tree_set_ranks(tree.handle(), nullptr));
}
/// Interleaved: a page of the pool consists of one page on each rank.
inline Result<void> setRanks(SequenceTree &sequences, const Ranks &ranks) {
  const deft_ranks own = detail::ranksOf(ranks);
  return detail::done(deft_sequence_tree_set_ranks(sequences.handle(), &own));
}
/// Call it before the first step. By page: PageTable::holders names the rank that holds each page.
inline Result<void> setRanks(PagedBatch &batch, const Ranks &ranks) {
  const deft_ranks own = detail::ranksOf(ranks);
  return detail::done(deft_paged_batch_set_ranks(batch.handle(), &own));
}

/// Proposes which rank holds the page at location p * pageSize, for each p: shared nodes are split evenly,
/// and a query's own nodes lie on one rank.
inline Result<std::vector<int>> proposeHolders(const Tree &tree, int count, int pageSize) {
  return detail::array<int, std::int32_t>(
      [&](auto to, auto size) { return deft_tree_propose_holders(tree.handle(), count, pageSize, to, size); },
      [](std::int32_t holder) { return holder; });
}

} // namespace deft
