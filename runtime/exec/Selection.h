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

/// The tokens of a query's path that a sparse layer reads (LANGUAGE.md, rules K).
namespace deft::exec {

/// Lists that a caller gives (rule K7): [query, caller's index][budget] slots of the cache; -1: no token.
struct GivenLists {
  const std::int32_t *slots = nullptr;
  int queries = 0;
  int budget = 0;

  std::span<const std::int32_t> of(int query) const {
    return {slots + static_cast<std::ptrdiff_t>(query) * budget, static_cast<std::size_t>(budget)};
  }
};

/// Lists of selected tokens, in a shape that does not depend on their contents.
struct Selection {
  int queries = 0;
  int lists = 0; ///< per query: spec::Variant::lists
  int budget = 0;
  /// [query, caller's index][list][budget]: ascending positions on the query's path; -1 behind the last.
  std::vector<std::int32_t> positions;
  std::vector<std::int32_t> counts; ///< [query][list]
  /// True: the numbers are slots of the cache instead of positions, in any order.
  bool areSlots = false;

  /// Takes the tokens of these lists, without the entries of -1.
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

/// An entry of a list that is neither a slot of the cache nor -1.
struct WrongSlot {
  int query, slot;

  /// Continues the name of the lists: "has 9000 for query 2, and the cache has 512 slots".
  std::string text(std::int64_t slots) const;
};
/// Searches lists for a cache of `slots` slots. None: all entries are valid.
std::optional<WrongSlot> findWrongSlot(const GivenLists &lists, std::int64_t slots);

/// Checks that lists of the variant may have this budget.
support::Result<void> checkBudget(const spec::Variant &variant, int budget);

/// The worth of a token that is hidden from all heads of a list.
constexpr float kHiddenWorth = -std::numeric_limits<float>::infinity();

/// The worth of a score: the score, or for NaN the lowest finite number, so that tokens can be sorted.
inline float worthOfScore(float score) { return score == score ? score : -std::numeric_limits<float>::max(); }

/// Chooses the tokens of one list. `worth` has one entry for each position of the path. Writes `budget`
/// numbers to `positions`, with -1 behind the last token, and returns the number of tokens. Calls may share
/// the memory `keys`.
int selectTokens(std::span<const float> worth, const spec::SelectSpec &select, int budget,
                 std::int32_t *positions, std::vector<std::uint64_t> &keys);

} // namespace deft::exec
