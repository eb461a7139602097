#include "runtime/exec/cpu/SelectJob.h"

#include <algorithm>

namespace deft::exec {

SelectJob::SelectJob(const spec::SelectSpec &select, const plan::Paths &paths, WorthTable &worth,
                     Selection &selection, std::vector<std::vector<std::uint64_t>> &keys)
    : select_(select), paths_(paths), worth_(worth), selection_(selection), keys_(keys),
      units_(selection.queries * selection.lists) {
  for (std::vector<std::uint64_t> &some : keys) // here, since a job must not allocate
    some.reserve(static_cast<std::size_t>(worth.tokens));
}

int SelectJob::helpers() const {
  constexpr double kLeastNs = 10'000, kTokenNs = 4;
  const double worth = static_cast<double>(units_) * worth_.tokens * kTokenNs / kLeastNs;
  return static_cast<int>(std::min(worth, std::max(units_ - 1.0, 0.0)));
}

void SelectJob::run(int slot) noexcept {
  for (int unit = next_++; unit < units_; unit = next_++)
    makeList(unit / selection_.lists, unit % selection_.lists, keys_[static_cast<std::size_t>(slot)]);
}

void SelectJob::makeList(int query, int list, std::vector<std::uint64_t> &keys) {
  const auto tokens = static_cast<std::size_t>(paths_.queryPos(query)) + 1;
  float *worth = worth_.of(query, list);
  if (select_.by == spec::SelectBy::Query) // one list for all groups
    for (int group = 1; group < worth_.groups; ++group) {
      const float *other = worth_.of(query, group);
      for (std::size_t t = 0; t < tokens; ++t)
        worth[t] = std::max(worth[t], other[t]);
    }
  const std::size_t at = selection_.listAt(query, list);
  selection_.counts[at] =
      selectTokens({worth, tokens}, select_, selection_.budget,
                   selection_.positions.data() + at * static_cast<std::size_t>(selection_.budget), keys);
}

} // namespace deft::exec
