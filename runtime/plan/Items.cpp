#include "runtime/plan/Tiles.h"

#include <algorithm>
#include <climits>

namespace deft::plan {

namespace {

/// Chunks are multiples of the smallest token step of any kernel.
constexpr int kChunkStep = 16;

/// What starting one more item costs, in tokens: its index, queries and first tile are loaded with
/// nothing to overlap them. Only ranks chunk sizes against each other; the tuner measures the real optimum.
constexpr double kItemStartTokens = 48;
/// What going through partials and the merge costs, in tokens, and the smallest chunk worth it.
constexpr double kMergeTokens = 96;
constexpr int kSmallestChunk = 64;

long long divideUp(long long a, long long b) { return (a + b - 1) / b; }
long long roundUp(long long a, long long step) { return divideUp(a, step) * step; }

} // namespace

int chooseChunkTokens(const TileList &list, int kvHeads, int blocks) {
  long long total = 0;
  long long longest = 0;
  for (const Tile &tile : list.tiles) {
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
    for (const Tile &tile : list.tiles)
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

namespace {

/// Cuts one tile after the other. Vectors of the size of a tile are kept between tiles.
class ItemCutter {
public:
  ItemCutter(const TileList &list, Plan &plan) : list_(list), plan_(plan) {}

  support::Result<void> cut(const Tile &tile, int mostTokens) {
    if (tile.tokens == 0)
      return addUncovered(tile);
    const long long chunks = divideUp(tile.tokens, mostTokens);
    const long long chunkTokens = roundUp(divideUp(tile.tokens, chunks), kChunkStep);
    const std::size_t firstItem = plan_.items.size();
    cutRuns(tile, static_cast<int>(chunkTokens));
    return finish(tile, firstItem);
  }

private:
  /// Runs of the tile into items, cut at multiples of `chunkTokens`.
  void cutRuns(const Tile &tile, int chunkTokens) {
    int room = 0;
    for (int r = tile.runBegin; r < tile.runBegin + tile.runCount; ++r) {
      abi::Run rest = list_.runs[r];
      while (rest.tokens > 0) {
        if (room == 0) {
          abi::Item item{};
          item.queryBegin = tile.queryBegin;
          item.queryCount = tile.queryCount;
          item.runBegin = static_cast<int>(plan_.runs.size());
          plan_.items.push_back(item);
          room = chunkTokens;
        }
        abi::Item &item = plan_.items.back();
        abi::Run run = rest;
        run.tokens = std::min(rest.tokens, room);
        run.begin = item.tokens;
        plan_.runs.push_back(run);
        ++item.runCount;
        item.tokens += run.tokens;
        room -= run.tokens;
        rest.tokens -= run.tokens;
        rest.location += run.tokens;
        rest.position += run.tokens;
      }
    }
  }

  /// Narrows the tile's items to their readers, decides which write the output, and adds the tile's
  /// queries to the merge map.
  support::Result<void> finish(const Tile &tile, std::size_t firstItem) {
    chunksOfQuery_.assign(tile.queryCount, 0);
    for (std::size_t i = firstItem; i < plan_.items.size(); ++i)
      forEachReader(tile, plan_.items[i], [&](int query) { ++chunksOfQuery_[query]; });

    const bool isSingle = plan_.items.size() == firstItem + 1;
    slotsOfQuery_.resize(std::max<std::size_t>(slotsOfQuery_.size(), tile.queryCount));
    isWritten_.assign(tile.queryCount, false);
    for (std::size_t i = firstItem; i < plan_.items.size(); ++i) {
      abi::Item &item = plan_.items[i];
      int first = tile.queryCount, last = -1, complete = 0;
      forEachReader(tile, item, [&](int query) {
        first = std::min(first, query);
        last = query;
        complete += chunksOfQuery_[query] == 1;
      });
      // Direct output needs every query of the item to be complete in it. In a tile of one item that
      // holds for those without any token, too: they get their zeros here.
      const int count = last - first + 1;
      const bool isDirect = isSingle || complete == count;
      if (!isDirect && plan_.partialSlots > INT_MAX - count)
        return support::Error{support::ErrorCode::Diagnostics, "the plan needs more than 2^31 partials",
                              "use a larger chunk"};
      item.partialBegin = isDirect ? -1 : plan_.partialSlots;
      if (isDirect)
        std::fill(isWritten_.begin() + first, isWritten_.begin() + last + 1, true);
      else
        forEachReader(tile, item,
                      [&](int query) { slotsOfQuery_[query].push_back(plan_.partialSlots + query - first); });
      plan_.partialSlots += isDirect ? 0 : count;
      narrow(tile, item, first, count);
    }
    for (int query = 0; query < tile.queryCount; ++query) {
      if (!isWritten_[query])
        addToMergeMap(tile.queryBegin + query, slotsOfQuery_[query]);
      slotsOfQuery_[query].clear();
    }
    return {};
  }

  void narrow(const Tile &tile, abi::Item &item, int first, int count) {
    item.queryBegin = tile.queryBegin + first;
    item.queryCount = count;
    for (int r = item.runBegin; r < item.runBegin + item.runCount; ++r) {
      plan_.runs[r].queryBegin -= first;
      plan_.runs[r].queryEnd -= first;
    }
  }

  /// Calls back once for each query (relative to the tile) that sees a run of the item, ascending.
  template <typename Callback>
  void forEachReader(const Tile &tile, const abi::Item &item, Callback callback) {
    edges_.assign(tile.queryCount + 1, 0);
    for (int r = item.runBegin; r < item.runBegin + item.runCount; ++r) {
      ++edges_[plan_.runs[r].queryBegin];
      --edges_[plan_.runs[r].queryEnd];
    }
    int open = 0;
    for (int query = 0; query < tile.queryCount; ++query)
      if ((open += edges_[query]) > 0)
        callback(query);
  }

  support::Result<void> addUncovered(const Tile &tile) {
    for (int query = 0; query < tile.queryCount; ++query)
      addToMergeMap(tile.queryBegin + query, {});
    return {};
  }

  void addToMergeMap(int query, const std::vector<int> &slots) {
    plan_.mergeQuery.push_back(query);
    plan_.mergeSlot.insert(plan_.mergeSlot.end(), slots.begin(), slots.end());
    plan_.mergeBegin.push_back(static_cast<int>(plan_.mergeSlot.size()));
  }

  const TileList &list_;
  Plan &plan_;
  std::vector<int> chunksOfQuery_;
  std::vector<std::vector<int>> slotsOfQuery_;
  std::vector<bool> isWritten_;
  std::vector<int> edges_;
};

} // namespace

support::Result<void> cutIntoItems(const TileList &list, int chunkTokens, Plan &plan) {
  plan.mergeBegin = {0};
  ItemCutter cutter(list, plan);
  for (const Tile &tile : list.tiles)
    if (auto cut = cutter.cut(tile, chunkTokens); !cut)
      return cut;
  return {};
}

void sortIntoPhases(const config::Config &config, int ratio, Plan &plan) {
  const auto phaseOf = [&](const abi::Item &item) {
    const int rows = item.queryCount * ratio;
    std::size_t chosen = 0, widest = 0;
    while (chosen + 1 < config.phases.size() && rows <= config.phases[chosen].rowsAbove)
      ++chosen;
    for (std::size_t i = 0; i < config.phases.size(); ++i)
      if (config.phases[i].tileQ > config.phases[widest].tileQ)
        widest = i;
    // A phase serves what its tile can hold, whatever the bounds of the schedule say.
    return config.phases[chosen].tileQ >= rows ? chosen : widest;
  };
  std::vector<std::vector<abi::Item>> byPhase(config.phases.size());
  for (const abi::Item &item : plan.items)
    byPhase[phaseOf(item)].push_back(item);
  plan.items.clear();
  for (std::vector<abi::Item> &items : byPhase) {
    std::stable_sort(items.begin(), items.end(),
                     [](const abi::Item &a, const abi::Item &b) { return a.tokens > b.tokens; });
    plan.phases.push_back({static_cast<int>(plan.items.size()), static_cast<int>(items.size())});
    plan.items.insert(plan.items.end(), items.begin(), items.end());
  }
}

} // namespace deft::plan
