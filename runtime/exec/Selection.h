#pragma once

#include "compiler/spec/Variant.h"
#include "compiler/support/Result.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// Which tokens of a query's path a sparse layer reads (LANGUAGE.md, rules K).
namespace deft::exec {

/// Lists that a caller hands over (rule K7): [query, caller's index][budget] slots of the cache; -1: none.
struct GivenLists {
  const std::int32_t *slots = nullptr;
  int queries = 0;
  int budget = 0;

  std::span<const std::int32_t> of(int query) const {
    return {slots + static_cast<std::ptrdiff_t>(query) * budget, static_cast<std::size_t>(budget)};
  }
};

/// Lists of selected tokens, in a shape that does not follow from what is in them.
struct Selection {
  int queries = 0;
  int lists = 0; ///< of a query: spec::Variant::lists
  int budget = 0;
  /// [query, caller's index][list][budget]: positions on the query's path, rising; -1 behind the last one.
  std::vector<std::int32_t> positions;
  std::vector<std::int32_t> counts; ///< [query][list]
  /// Whether they are slots of the cache in place of positions, in any order.
  bool areSlots = false;

  /// The tokens of these lists, without what is none.
  void take(const GivenLists &given);
  void resize(int someQueries, int someLists, int someBudget);

  std::size_t listAt(int query, int list) const {
    return static_cast<std::size_t>(query) * static_cast<std::size_t>(lists) + static_cast<std::size_t>(list);
  }
  std::span<const std::int32_t> of(int query, int list) const {
    const std::size_t at = listAt(query, list);
    return std::span(positions).subspan(at * static_cast<std::size_t>(budget),
                                        static_cast<std::size_t>(counts[at]));
  }
};

/// What a list has that is neither a slot of the cache nor -1.
struct WrongSlot {
  int query, slot;

  /// "has 9000 for query 2, and the cache has 512 slots", which follows the name of the lists.
  std::string text(std::int64_t slots) const;
};
/// In a cache of so many slots; none: all entries are right.
std::optional<WrongSlot> findWrongSlot(const GivenLists &lists, std::int64_t slots);

/// Whether lists of an attention can have so many tokens.
support::Result<void> checkBudget(const spec::Variant &variant, int budget);

/// Of a query's heads those whose largest score is what a token is worth to a list: so many groups.
inline int worthGroupsOf(const spec::Variant &variant) {
  return variant.select && variant.select->by == spec::SelectBy::QueryHead ? variant.queryHeads
                                                                           : variant.kvHeads;
}

/// Of a token that is hidden from all heads of a list.
constexpr float kHiddenWorth = -std::numeric_limits<float>::infinity();

/// What a score is worth: itself, and NaN as the lowest finite number, so that it has a place in the order.
inline float worthOfScore(float score) { return score == score ? score : -std::numeric_limits<float>::max(); }

/// Chooses the tokens of one list, of as many as `worth` has, one a position of the path; writes as many
/// positions to `positions` as `budget` says, -1 behind the last, and returns how many tokens there are.
/// `keys` is memory that calls may share.
int selectTokens(std::span<const float> worth, const spec::SelectSpec &select, int budget,
                 std::int32_t *positions, std::vector<std::uint64_t> &keys);

} // namespace deft::exec
