#include "runtime/plan/Items.h"

#include <algorithm>
#include <cmath>

namespace deft::plan {

namespace {

// Costs in tokens that a block computes meanwhile, on an H200, and taken for every device: they rank the
// chunk sizes of one tree against each other, and nothing else. Whether its plan is the cheapest is asked of
// the device's own prices (CostModel), and the tuner measures chunks themselves. Other numbers here would
// change untuned plans.

struct TokenPrices {
  /// What starting one more item costs: its index, queries and first tile are loaded with nothing to overlap
  /// them.
  double itemStart;
  /// What going through partials and the merge costs.
  double merge;
  /// Partials are written and read again by the whole machine, while a block computes this many tokens: a
  /// value of one in 1.3 ps.
  double partialValue;
};
/// A token in 15 ns; of a latent cache, whose rows are more than four times as long, in 30.
constexpr TokenPrices kOrdinary{48, 96, 4.0 / (3e6 * 0.015)}, kLatent{100, 48, 4.0 / (3e6 * 0.030)};

/// What is shorter is not worth an item.
constexpr int kSmallestChunk = 64;

/// Partials must gain so much.
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
  // A block's fair share of all tokens, and fractions of it: smaller chunks even out the last wave but
  // start more items.
  const double share = total * facts.kvHeads / machine;
  const TokenPrices &prices = facts.tensors.valueInKey ? kLatent : kOrdinary;
  const double partialTokens =
      2.0 * (facts.tensors.out.dim + 1) * facts.ratio * facts.kvHeads * prices.partialValue; // of one query
  const auto costOf = [&](double items, double partials, int chunk) {
    const double waves = std::ceil(items * facts.kvHeads / machine);
    // Units of one length run in waves. Of many lengths, heaviest first, the short ones fill the gaps; what
    // is left uneven in the end is about one of the mean length. Nothing ends before the longest one.
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
    for (const Tile &tile : tiles) { // rounded up; half a token keeps multiples of the chunk what they are
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
  // Few tiles are cut into so many equal parts each: a little more than a share would leave a short rest.
  for (int parts = 2; parts <= kMostChunkParts && fewest * facts.kvHeads * parts <= 2 * machine; ++parts)
    tryOut(static_cast<double>(longest) / parts);
  return best;
}

} // namespace deft::plan
