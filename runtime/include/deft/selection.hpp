#pragma once

#include <deft/attention.hpp>
#include <deft/c/selection.h>

/// Which tokens a sparse layer reads, for attentions whose spec says `select`.
namespace deft {

/// For each list of each query, the positions of the tokens that a selecting run chose. Runs reuse its
/// memory, whose shape does not depend on the choice. It serves all layers until the tree changes; then
/// another selecting run must come first. For one thread at a time, but many sparse runs may read it at
/// once.
class Selection {
public:
  /// Makes a selection with lists of at most `budget` tokens, one of the spec's budgets (Attention::selects);
  /// none: the first of them.
  static Result<Selection> make(const Attention &attention, std::optional<int> budget = {}) {
    // In C, 0 asks for the first budget; here it is an invalid budget.
    const std::int32_t asked = !budget ? 0 : *budget == 0 ? -1 : *budget;
    return detail::made<Selection, deft_selection>(
        [&](auto to) { return deft_selection_make(attention.handle(), asked, to); });
  }
  /// Takes a handle of <deft/deft.h>.
  explicit Selection(deft_selection *handle) : handle_(handle) {}

  int budget() const { return view().budget; }
  int lists() const { return view().lists; }        ///< of a query: one, or one per KV head or query head
  int queryCount() const { return view().queries; } ///< of the last selecting run; 0 before the first

  /// The chosen positions on the query's path, ascending, from 0 at the root. Empty if there is no such query
  /// or list.
  std::span<const std::int32_t> positions(int query, int list) const {
    const deft_selection_view all = view();
    if (query < 0 || query >= all.queries || list < 0 || list >= all.lists)
      return {};
    const std::int64_t at = std::int64_t{query} * all.lists + list;
    return {all.positions + at * all.budget, static_cast<std::size_t>(all.counts[at])};
  }
  /// All lists: [query][list][budget], with -1 behind the last position of a list.
  std::span<const std::int32_t> allPositions() const {
    const deft_selection_view all = view();
    return {all.positions, rows(all) * static_cast<std::size_t>(all.budget)};
  }
  /// [query][list]
  std::span<const std::int32_t> counts() const {
    const deft_selection_view all = view();
    return {all.counts, rows(all)};
  }

  const deft_selection *handle() const { return handle_.get(); } ///< for <deft/deft.h>
  deft_selection *handle() { return handle_.get(); }

private:
  deft_selection_view view() const {
    return detail::factsOf<deft_selection_view>([&](auto to) { return deft_selection_get(handle(), to); });
  }
  static std::size_t rows(const deft_selection_view &all) {
    return static_cast<std::size_t>(all.queries) * static_cast<std::size_t>(all.lists);
  }

  detail::Owned<deft_selection, deft_selection_destroy> handle_;
};

} // namespace deft
