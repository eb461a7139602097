#include "runtime/plan/Items.h"

#include <algorithm>

namespace deft::plan {

namespace {

/// What starting one more item costs, in tokens: its index, queries and first tile are loaded with
/// nothing to overlap them. Only ranks chunk sizes against each other; the tuner measures the real optimum.
constexpr double kItemStartTokens = 48;
/// What going through partials and the merge costs, in tokens, and the smallest chunk worth it.
constexpr double kMergeTokens = 96;
constexpr int kSmallestChunk = 64;

long long divideUp(long long a, long long b) { return (a + b - 1) / b; }
long long roundUp(long long a, long long step) { return divideUp(a, step) * step; }

} // namespace

int chooseChunkTokens(std::span<const Tile> tiles, int kvHeads, int blocks) {
  long long total = 0;
  long long longest = 0;
  for (const Tile &tile : tiles) {
    total += tile.tokens;
    longest = std::max<long long>(longest, tile.tokens);
  }
  const long long whole = std::max<long long>(roundUp(longest, kChunkStep), kSmallestChunk);
  const long long smallest = kSmallestChunk;
  // A block's fair share of all tokens, and fractions of it: smaller chunks even out the last wave but
  // start more items. Rounds times the largest chunk is what the slowest block does.
  const double share = static_cast<double>(total) * kvHeads / std::max(blocks, 1);
  long long best = whole;
  double bestCost = 0;
  for (int parts = 0; parts <= 8; ++parts) {
    const long long chunk =
        parts == 0 ? whole
                   : std::clamp(roundUp(static_cast<long long>(share / parts), kChunkStep), smallest, whole);
    long long units = 0;
    for (const Tile &tile : tiles)
      units += divideUp(tile.tokens, chunk) * kvHeads;
    const double waves = static_cast<double>(divideUp(units, std::max(blocks, 1)));
    // Tiles of unequal length fill a wave unevenly, but never take less than the fair share.
    const double cost = std::max(waves * static_cast<double>(chunk), share) + waves * kItemStartTokens +
                        (chunk < longest ? kMergeTokens : 0);
    if (parts == 0 || cost < 0.95 * bestCost) { // a gain that is worth the partials
      best = chunk;
      bestCost = cost;
    }
  }
  return static_cast<int>(best);
}

} // namespace deft::plan
