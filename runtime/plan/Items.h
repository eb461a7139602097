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

/// From tiles to the work list.
namespace deft::plan {

/// Chunks are multiples of the smallest token step of any kernel.
constexpr int kChunkStep = 16;
/// Into so many parts of equal size, at most, chooseChunkTokens cuts a block's share, or a tile.
constexpr int kMostChunkParts = 8;

/// Most tokens that an item of these tiles may hold so that the machine is filled with as few partials as
/// will do. A multiple of kChunkStep.
int chooseChunkTokens(std::span<const Tile> tiles, const VariantFacts &facts, int blocks);

/// Cuts tiles into items. Kept between plans for its memory.
class ItemCutter {
public:
  static constexpr int kMostPartials = 1 << 28;

  /// Fills items, runs, partial slots, the merge map and the growing runs of `plan`. Items of at most
  /// `chunkTokens` (a multiple of kChunkStep) where a tile has no limit of its own; each has only the queries
  /// that see some of it. Where `mayWriteOutput`, items of nothing but complete rows write the output.
  support::Result<void> cut(const TreeView &view, const TileList &list, int chunkTokens, bool mayWriteOutput,
                            Plan &plan);

  /// Tokens of the longest item of the last cut.
  int longest() const { return longest_; }

private:
  /// Queries that see some of an item. Most items have one such interval, which is the item's own.
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

  std::vector<Segment> path_;   ///< that is cut
  std::vector<Readers> parts_;  ///< of items whose readers are several intervals, in order
  std::vector<int> partials_;   ///< of each query: how many items it reads
  std::vector<int> unfinished_; ///< of each query: how many before it read other than one item
  std::vector<char> isWritten_; ///< of each query
  std::vector<int> cursor_;     ///< of each query: its next place in the merge map
  int longest_ = 0;
};

/// Gives each item to a phase by its rows, heaviest first within a phase, ties in plan order. Linear.
class PhaseSorter {
public:
  /// No item has more than `longest` tokens.
  void sort(const config::Config &config, int ratio, int longest, Plan &plan);

private:
  /// What to sort by, above the index of the item.
  using Key = std::uint64_t;
  static constexpr int kIndexBits = 28;
  static constexpr int kDigitBits = 11;
  void findPhases(const config::Config &config, int ratio);
  void sortItems(Key differ, Plan &plan);
  void countDigits(int shift, int width);
  void sortByDigit(int shift, int width);
  void placeByDigit(int shift, int width, Plan &plan);

  std::vector<int> phaseOf_; ///< by queries of an item
  std::array<int, 1 << kDigitBits> begin_, odd_;
  std::vector<Key> keys_, sorted_;
  std::vector<abi::Item> items_;
  std::vector<int> placed_;
};

} // namespace deft::plan
