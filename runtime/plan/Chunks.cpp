#include "runtime/plan/Items.h"

#include <algorithm>
#include <cmath>

namespace deft::plan {

namespace {

/// What starting one more item costs, in tokens: its index, queries and first tile are loaded with
/// nothing to overlap them. Only ranks chunk sizes against each other; the tuner measures the real optimum.
constexpr double kItemStartTokens = 48;
/// What going through partials and the merge costs, in tokens, and the smallest chunk worth it.
constexpr double kMergeTokens = 96;
constexpr int kSmallestChunk = 64;

/// Partials must gain so much.
constexpr double kWorthwhile = 0.95;

int roundUp(int a, int step) { return (a + step - 1) / step * step; }

} // namespace

int chooseChunkTokens(std::span<const Tile> tiles, int kvHeads, int blocks) {
  double total = 0;
  int longest = 0;
  for (const Tile &tile : tiles) {
    total += tile.tokens;
    longest = std::max(longest, tile.tokens);
  }
  const int whole = std::max(roundUp(longest, kChunkStep), kSmallestChunk);
  const double machine = std::max(blocks, 1);
  // A block's fair share of all tokens, and fractions of it: smaller chunks even out the last wave but
  // start more items.
  const double share = total * kvHeads / machine;
  const auto costOf = [&](double units, int chunk) {
    const double waves = std::ceil(units * kvHeads / machine);
    // Units of one length run in waves. Of many lengths, heaviest first, the light ones fill the gaps; what
    // is left uneven in the end is about one of the mean length. Nothing ends before the longest one.
    const double longestUnit = std::min(chunk, longest);
    const double time = std::max(longestUnit, std::min(waves * longestUnit, share + total / units));
    return time + waves * kItemStartTokens + (chunk < longest ? kMergeTokens : 0);
  };
  const double fewest = static_cast<double>(tiles.size());
  int best = whole;
  double bestCost = tiles.empty() ? 0 : costOf(fewest, whole);
  const double least = share + std::ceil(fewest * kvHeads / machine) * kItemStartTokens + kMergeTokens;
  for (int parts = 1; parts <= 8 && least < kWorthwhile * bestCost; ++parts) {
    const double part = std::min<double>(share / parts, whole);
    const int chunk = std::clamp(roundUp(static_cast<int>(part), kChunkStep), kSmallestChunk, whole);
    if (chunk == whole)
      continue;
    const double perToken = 1.0 / chunk;
    double units = 0;
    for (const Tile &tile : tiles) // rounded up; half a token keeps multiples of the chunk what they are
      units += 1 + static_cast<int>((tile.tokens - 0.5) * perToken);
    if (const double cost = costOf(units, chunk); cost < kWorthwhile * bestCost) {
      best = chunk;
      bestCost = cost;
    }
  }
  return best;
}

} // namespace deft::plan
