#include "runtime/plan/Items.h"

#include <algorithm>
#include <cmath>

namespace deft::plan {

namespace {

/// The device's prices in tokens that a block computes in that time. They only rank the chunk sizes of one
/// tree: its plan is compared with others by the prices of items (CostModel), and the tuner measures chunks.
struct TokenPrices {
  double item;         ///< one more item of a block
  double merge;        ///< having partials
  double partialValue; ///< writing or reading one value of a partial, as 4 bytes

  TokenPrices(const config::CostCoefficients &cost, bool isLatent) {
    const double tokenUs = isLatent ? cost.latentTokenUs : cost.chunkTokenUs;
    item = (isLatent ? cost.latentItemUs : cost.chunkItemUs) / tokenUs;
    merge = cost.chunkMergeUs / tokenUs;
    partialValue = 4.0 / (cost.chunkPartialGBs * 1e3 * tokenUs);
  }
};

/// The tokens of a step of most kernels: a shorter chunk takes as long.
constexpr int kSmallestChunk = 64;

/// Partials must promise at most this share of the time. The same 5 % that plans with a merge must be cheaper
/// by (CostCoefficients::mergedShare): such prices are no more exact.
constexpr double kWorthwhile = 0.95;

int roundUp(int a, int step) { return (a + step - 1) / step * step; }

} // namespace

int chooseChunkTokens(std::span<const Tile> tiles, const VariantFacts &facts,
                      const config::CostCoefficients &cost, int blocks) {
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
  const TokenPrices prices(cost, facts.tensors.valueInKey);
  const double partialTokens =
      2.0 * (facts.tensors.out.dim + 1) * facts.ratio * facts.kvHeads * prices.partialValue; // of one query
  const auto costOf = [&](double items, double partials, int chunk) {
    const double waves = std::ceil(items * facts.kvHeads / machine);
    // Units of equal length run in waves. With different lengths, heaviest first, short units fill the gaps,
    // and the imbalance at the end is about one unit of average length. The longest unit is a lower bound.
    const double longestItem = std::min(chunk, longest);
    const double time = std::max(longestItem, std::min(waves * longestItem, share + total / items));
    return time + waves * prices.item + (chunk < longest ? prices.merge + partials * partialTokens : 0);
  };
  const double fewest = static_cast<double>(tiles.size());
  int best = whole;
  double bestCost = tiles.empty() ? 0 : costOf(fewest, 0, whole);
  const double least = share + std::ceil(fewest * facts.kvHeads / machine) * prices.item + prices.merge;
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
    if (const double tokens = costOf(static_cast<double>(items), static_cast<double>(partials), chunk);
        tokens < kWorthwhile * bestCost) {
      best = chunk;
      bestCost = tokens;
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
