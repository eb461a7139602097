#include "runtime/plan/PriceCut.h"

#include "runtime/plan/Items.h"

#include <algorithm>
#include <span>

namespace deft::plan {
namespace {

/// The tokens of a step of most kernels: a shorter item costs as much.
constexpr int kLeastTokens = 64;

/// Halvings of the interval in which the price of the most expensive item lies.
constexpr int kHalvings = 12;

int roundUp(int value, int step) { return (value + step - 1) / step * step; }

} // namespace

int PriceCut::Whole::itemsOf(double most) const {
  const double parts = restUs / std::max(most - startUs, leastUs);
  const int full = static_cast<int>(parts);
  return std::clamp(full + (parts > full ? 1 : 0), 1, mostItems);
}

bool PriceCut::fit(double most, int items) const {
  int count = 0;
  for (const Whole &tile : tiles_) {
    count += tile.itemsOf(most);
    if (count > items)
      return false;
  }
  return true;
}

int PriceCut::set(const CostModel &model, int items, TileList &list) {
  tiles_.clear();
  double dearest = 0, total = 0;
  for (const Tile &tile : list.tiles) {
    const double us =
        tile.isPath ? model.leastUnitUs(tile.queryCount, tile.tokens) + (tile.runCount - 1) * model.runUs()
                    : model.leastUnitUs(std::span(list.runs.data() + tile.runBegin,
                                                  static_cast<std::size_t>(tile.runCount)),
                                        tile.tokens);
    Whole whole;
    whole.startUs = model.leastItemUs(std::min(tile.queryCount, model.queriesPerTile()));
    whole.restUs = us - whole.startUs;
    whole.tokens = tile.tokens;
    whole.mostItems = std::max(1, tile.tokens / kLeastTokens);
    whole.leastUs = whole.restUs / whole.mostItems;
    dearest = std::max(dearest, us);
    total += us;
    tiles_.push_back(whole);
  }
  double cheapest = total / items; // some item costs as much
  if (fit(dearest, items))
    for (int i = 0; i < kHalvings; ++i) {
      const double middle = (cheapest + dearest) / 2;
      (fit(middle, items) ? dearest : cheapest) = middle;
    }
  int longest = kLeastTokens;
  for (std::size_t i = 0; i < tiles_.size(); ++i) {
    const int parts = tiles_[i].itemsOf(dearest);
    const int chunk = roundUp((tiles_[i].tokens + parts - 1) / parts, kChunkStep);
    list.tiles[i].chunkTokens = parts > 1 ? chunk : 0;
    longest = std::max(longest, chunk);
  }
  return longest;
}

void PriceCut::clear(TileList &list) {
  for (Tile &tile : list.tiles)
    tile.chunkTokens = 0;
}

} // namespace deft::plan
