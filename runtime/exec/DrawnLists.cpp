#include "runtime/exec/DrawnLists.h"

#include <algorithm>
#include <random>

namespace deft::exec {

namespace {

struct Token {
  int position;
  int slot;
};

std::vector<Token> tokensOf(const plan::Paths &paths, int query, const Inputs &inputs, int pageSize) {
  std::vector<Token> tokens;
  for (const plan::PathStretch &stretch : paths.of(query))
    for (int t = 0; t < stretch.tokens; ++t)
      tokens.push_back({stretch.position + t, static_cast<int>(cacheSlotOf(inputs.pageTable.data(), pageSize,
                                                                           stretch.location + t))});
  return tokens;
}

} // namespace

DrawnLists drawLists(const plan::Paths &paths, const Inputs &inputs, int pageSize, int budget, bool holes,
                     std::uint64_t seed) {
  std::mt19937_64 random(seed);
  DrawnLists drawn;
  drawn.selection.resize(paths.queryCount(), 1, budget);
  std::fill(drawn.selection.positions.begin(), drawn.selection.positions.end(), -1);
  drawn.slots.assign(drawn.selection.positions.size(), -1);
  for (int query = 0; query < paths.queryCount(); ++query) {
    std::vector<Token> tokens = tokensOf(paths, query, inputs, pageSize);
    std::shuffle(tokens.begin(), tokens.end(), random);
    std::size_t count = std::min(tokens.size(), static_cast<std::size_t>(budget));
    if (holes)
      count = static_cast<std::size_t>(random() % (count + 1));
    tokens.resize(count);
    const auto first = static_cast<std::ptrdiff_t>(query) * budget;
    const auto slots = drawn.slots.begin() + first;
    std::transform(tokens.begin(), tokens.end(), slots, [](const Token &token) { return token.slot; });
    if (holes)
      std::shuffle(slots, slots + budget, random);
    const auto positions = drawn.selection.positions.begin() + first;
    std::transform(tokens.begin(), tokens.end(), positions,
                   [](const Token &token) { return token.position; });
    std::sort(positions, positions + static_cast<std::ptrdiff_t>(count));
    drawn.selection.counts[static_cast<std::size_t>(query)] = static_cast<std::int32_t>(count);
  }
  return drawn;
}

} // namespace deft::exec
