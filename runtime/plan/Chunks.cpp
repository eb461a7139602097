#include "runtime/plan/Items.h"

#include <algorithm>
#include <cmath>

namespace deft::plan {

namespace {

// Costs, in tokens that a block computes in that time, on an H200, and used for every device: they
// only rank the chunk sizes of one tree. The device's own prices (CostModel) decide whether its plan
// is the cheapest, and the tuner measures chunks directly. Other numbers here would change untuned
// plans.

struct TokenPrices {
  /// The cost of starting one more item: its index, queries and first tile are loaded without anything to
  /// overlap.
  double itemStart;
  /// The cost of partials and the merge.
  double merge;
  /// The whole machine writes and reads a value of a partial in 1.3 ps; this is the number of tokens that a
  /// block computes in that time.
  double partialValue;
};
/// A token takes 15 ns; in a latent cache, whose rows are more than four times as long, 30 ns.
constexpr TokenPrices kOrdinary{48, 96, 4.0 / (3e6 * 0.015)}, kLatent{100, 48, 4.0 / (3e6 * 0.030)};

/// Shorter chunks are not worth an item.
constexpr int kSmallestChunk = 64;

/// The share of the time that partials must reach or beat.
constexpr double kWorthwhile = 0.95;

int roundUp(int a, int step) { return (a + step - 1) / step * step; }

} // namespace

int chooseChunkTokens(std::span<const Tile> tiles, const VariantFacts &facts, int blocks) {
  std::int64_t tokens = 0;
  int longest = 0;
  for (const Tile &tile : tiles) {
    tokens += tile.tokens;
    longest = std::max(longest, tile.tokens);
  }
  const auto total = static_cast<double>(tokens);
  const int whole = std::max(roundUp(longest, kChunkStep), kSmallestChunk);
  const double machine = std::max(blocks, 1);
  // A block's fair share of all tokens, and fractions of it: smaller chunks even out the last wave but start
  // more items.
  const double share = total * facts.kvHeads / machine;
  const TokenPrices &prices = facts.tensors.valueInKey ? kLatent : kOrdinary;
  const double partialTokens =
      2.0 * (facts.tensors.out.dim + 1) * facts.ratio * facts.kvHeads * prices.partialValue; // of one query
  const auto costOf = [&](double items, double partials, int chunk) {
    const double waves = std::ceil(items * facts.kvHeads / machine);
    // Units of equal length run in waves. With different lengths, heaviest first, short units fill the gaps,
    // and the imbalance at the end is about one unit of average length. The longest unit is a lower bound.
    const double longestItem = std::min(chunk, longest);
    const double time = std::max(longestItem, std::min(waves * longestItem, share + total / items));
    return time + waves * prices.itemStart + (chunk < longest ? prices.merge + partials * partialTokens : 0);
  };
  const double fewest = static_cast<double>(tiles.size());
  int best = whole;
  double bestCost = tiles.empty() ? 0 : costOf(fewest, 0, whole);
  const double least = share + std::ceil(fewest * facts.kvHeads / machine) * prices.itemStart + prices.merge;
  const auto tryOut = [&](double part) {
    const int chunk =
        std::clamp(roundUp(static_cast<int>(std::ceil(part)), kChunkStep), kSmallestChunk, whole);
    if (chunk == whole)
      return;
    const double perToken = 1.0 / chunk;
    std::int64_t items = 0, partials = 0;
    for (const Tile &tile : tiles) { // rounded up; the half token keeps exact multiples of the chunk exact
      const int more = static_cast<int>((tile.tokens - 0.5) * perToken);
      items += 1 + more;
      partials += (more > 0 ? 1 + more : 0) * tile.queryCount;
    }
    if (const double cost = costOf(static_cast<double>(items), static_cast<double>(partials), chunk);
        cost < kWorthwhile * bestCost) {
      best = chunk;
      bestCost = cost;
    }
  };
  for (int parts = 1; parts <= kMostChunkParts && least < kWorthwhile * bestCost; ++parts)
    tryOut(std::min<double>(share / parts, whole));
  // Few tiles are cut into equal parts: chunks slightly above a block's share would leave short rests.
  for (int parts = 2; parts <= kMostChunkParts && fewest * facts.kvHeads * parts <= 2 * machine; ++parts)
    tryOut(static_cast<double>(longest) / parts);
  return best;
}

} // namespace deft::plan
