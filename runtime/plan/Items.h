#pragma once

#include "compiler/config/Config.h"
#include "compiler/support/Result.h"
#include "runtime/plan/Plan.h"
#include "runtime/plan/Tiles.h"
#include "runtime/plan/VariantFacts.h"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

/// Cuts tiles into the work list.
namespace deft::plan {

/// Chunks are multiples of the smallest token step of any kernel.
constexpr int kChunkStep = 16;
/// chooseChunkTokens cuts a block's share of the work, or a tile, into at most this many equal parts.
constexpr int kMostChunkParts = 8;

/// Chooses the largest items that keep all blocks busy with as few partials as possible. Returns the most
/// tokens of an item, a multiple of kChunkStep.
int chooseChunkTokens(std::span<const Tile> tiles, const VariantFacts &facts,
                      const config::CostCoefficients &cost, int blocks);

/// The tokens of the equal items of a tile that has more than `limit` tokens. The last item has the rest.
inline int evenChunk(int tokens, int limit) {
  const int items = (tokens - 1) / limit + 1, share = (tokens - 1) / items + 1;
  return (share + kChunkStep - 1) / kChunkStep * kChunkStep;
}

/// Cuts tiles into items. Keep the object between plans to reuse its memory.
class ItemCutter {
public:
  static constexpr int kMostPartials = 1 << 28;

  /// Fills the items, runs, partial slots, merge map and growing runs of `plan`. An item has at most
  /// `chunkTokens` (a multiple of kChunkStep) unless its tile sets a limit, and only the queries that see
  /// some of it. With `mayWriteOutput`, items with only complete rows write the output.
  support::Result<void> cut(const TreeView &view, const TileList &list, int chunkTokens, bool mayWriteOutput,
                            Plan &plan);

  /// The tokens of the longest item of the last cut.
  int longest() const { return longest_; }

private:
  /// The queries that see some of an item. Most items have one such interval, all of their queries.
  struct Readers {
    int item, begin, end;
  };
  struct Cursor;
  static const Tile *takePaths(const Tile *tile, const Tile *end, int limit, Cursor &at);
  void findPath(const Tile &tile, const Cursor &at);
  void takeWhole(const Tile &tile, const Segment *runs, Cursor &at);
  void cutTile(const Tile &tile, const Segment *runs, int chunk, Cursor &at);
  void addReaders(const Readers &readers, bool areAll, Cursor &at);
  bool areComplete(std::span<const Readers> parts) const;
  template <typename Callback> void forEachItem(Plan &plan, Callback callback) const;
  support::Result<void> giveSlots(bool mayWriteOutput, Plan &plan);
  void makeMergeMap(Plan &plan);

  std::vector<Segment> path_;   ///< the path that is being cut
  std::vector<Readers> parts_;  ///< only of items whose readers are several intervals, in order
  std::vector<int> partials_;   ///< for each query: the number of items that it reads
  std::vector<int> unfinished_; ///< for each query: how many queries before it read no item or several
  std::vector<char> isWritten_; ///< of each query
  std::vector<int> cursor_;     ///< for each query: its next place in the merge map
  int longest_ = 0;
};

/// Assigns items to phases by their rows, heaviest first within a phase; ties keep the plan's order. Linear.
class PhaseSorter {
public:
  /// No item has more than `longest` tokens.
  void sort(const config::Config &config, int ratio, int longest, Plan &plan);

private:
  /// The sort key, stored above the item's index.
  using Key = std::uint64_t;
  static constexpr int kIndexBits = 28;
  static constexpr int kDigitBits = 11;
  void findPhases(const config::Config &config, int ratio);
  void sortItems(Key differ, Plan &plan);
  void countDigits(int shift, int width);
  void sortByDigit(int shift, int width);
  void placeByDigit(int shift, int width, Plan &plan);

  std::vector<int> phaseOf_; ///< by the number of queries of an item
  std::array<int, 1 << kDigitBits> begin_, odd_;
  std::vector<Key> keys_, sorted_;
  std::vector<abi::Item> items_;
  std::vector<int> placed_;
};

} // namespace deft::plan
