#include "runtime/exec/Selection.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace deft::exec {

namespace {

/// Maps numbers to integers in the same order; -0 and 0 are equal.
std::uint32_t orderOf(float worth) {
  const auto bits = std::bit_cast<std::uint32_t>(worth + 0.0f);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

} // namespace

void Selection::resize(int someQueries, int someLists, int someBudget) {
  queries = someQueries;
  lists = someLists;
  budget = someBudget;
  counts.resize(static_cast<std::size_t>(queries) * static_cast<std::size_t>(lists));
  positions.resize(counts.size() * static_cast<std::size_t>(budget));
  areSlots = false;
}

void Selection::take(const GivenLists &given) {
  resize(given.queries, 1, given.budget);
  areSlots = true;
  for (int query = 0; query < queries; ++query) {
    std::int32_t *const to = positions.data() + listAt(query, 0) * static_cast<std::size_t>(budget);
    std::int32_t *end = to;
    for (const std::int32_t slot : given.of(query))
      if (slot >= 0)
        *end++ = slot;
    counts[listAt(query, 0)] = static_cast<std::int32_t>(end - to);
    std::fill(end, to + budget, -1);
  }
}

std::string WrongSlot::text(std::int64_t slots) const {
  return "has " + std::to_string(slot) + " for query " + std::to_string(query) + ", and the cache has " +
         std::to_string(slots) + " slots";
}

std::optional<WrongSlot> findWrongSlot(const GivenLists &lists, std::int64_t slots) {
  for (int query = 0; query < lists.queries; ++query)
    for (const std::int32_t slot : lists.of(query))
      if (slot < -1 || slot >= slots)
        return WrongSlot{query, slot};
  return {};
}

support::Result<void> checkBudget(const spec::Variant &variant, int budget) {
  const auto usage = [](std::string message, std::string hint) {
    return support::Error{support::ErrorCode::Usage, std::move(message), std::move(hint)};
  };
  if (!variant.select)
    return usage(variant.called() + " selects nothing", "write `select { budget = 4096; }` in the spec");
  const std::vector<int> &known = variant.select->budget.values;
  if (std::find(known.begin(), known.end(), budget) != known.end())
    return {};
  std::string list;
  for (const int one : known)
    list += (list.empty() ? "" : ", ") + std::to_string(one);
  return usage("a budget of " + std::to_string(budget) + " is none of " + variant.called() + "'s: " + list,
               "");
}

int selectTokens(std::span<const float> worth, const spec::SelectSpec &select, int budget,
                 std::int32_t *positions, std::vector<std::uint64_t> &keys) {
  // A token is one number: its worth in the upper bits and, below it, its place counted from the end, so that
  // of equal tokens the earlier one is larger. No float reaches the key of tokens that must be kept.
  constexpr std::uint32_t kKept = 0xffffffffu;
  const auto tokens = static_cast<std::int64_t>(worth.size());
  keys.clear();
  for (std::int64_t t = 0; t < tokens; ++t) {
    if (worth[static_cast<std::size_t>(t)] == kHiddenWorth)
      continue;
    const bool isKept = t < select.keepFirst || t >= tokens - select.keepLast;
    const std::uint64_t order = isKept ? kKept : orderOf(worth[static_cast<std::size_t>(t)]);
    keys.push_back(order << 32 | (0xffffffffu - static_cast<std::uint32_t>(t)));
  }
  const std::size_t count = std::min(keys.size(), static_cast<std::size_t>(budget));
  if (count < keys.size())
    std::nth_element(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(count), keys.end(),
                     std::greater<>());
  for (std::size_t i = 0; i < count; ++i)
    positions[i] = static_cast<std::int32_t>(0xffffffffu - static_cast<std::uint32_t>(keys[i]));
  std::sort(positions, positions + count);
  std::fill(positions + count, positions + budget, -1);
  return static_cast<int>(count);
}

} // namespace deft::exec
