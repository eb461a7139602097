#pragma once

#include "compiler/config/Config.h"
#include "compiler/support/Result.h"
#include "runtime/plan/Plan.h"
#include "runtime/plan/Tiles.h"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

/// From tiles to the work list.
namespace deft::plan {

/// Chunks are multiples of the smallest token step of any kernel.
constexpr int kChunkStep = 16;

/// Most tokens that an item of these tiles may hold so that the machine is filled with as few partials as
/// will do. A multiple of kChunkStep.
int chooseChunkTokens(std::span<const Tile> tiles, int kvHeads, int blocks);

/// Cuts tiles into items. Kept between plans for its memory.
class ItemCutter {
public:
  static constexpr int kMostPartials = 1 << 28;

  /// Fills items, runs, partial slots, the merge map and the growing runs of `plan`. Items of at most
  /// `chunkTokens` (a multiple of kChunkStep) where a tile has no limit of its own; each has only the queries
  /// that see some of it. Where `mayWriteOutput`, items of nothing but complete rows write the output.
  support::Result<void> cut(const TreeView &view, const TileList &list, int chunkTokens, bool mayWriteOutput,
                            Plan &plan);

private:
  /// Queries that see some of an item. Most items have one such interval, which is the item's own.
  struct Readers {
    int item, begin, end;
  };
  static void growAll(Plan &plan, std::size_t items, std::size_t runs, std::size_t tails);
  void makeRoom(Plan &plan, int items, int runs) const;
  void takeSegment(const TreeView &view, const Segment &segment, Plan &plan);
  void takePath(const TreeView &view, const TileList &list, const Tile &tile, Plan &plan);
  void takeWhole(const TreeView &view, const TileList &list, const Tile &tile, Plan &plan);
  void cutTile(const TreeView &view, const TileList &list, const Tile &tile, int chunk, Plan &plan);
  void addReaders(const Readers &readers, bool areAll) {
    ++partials_[static_cast<std::size_t>(readers.begin)];
    --partials_[static_cast<std::size_t>(readers.end)];
    if (!areAll)
      parts_.push_back(readers);
  }
  /// Whether all rows of the item are finished by it.
  bool isComplete(const abi::Item &item, std::span<const Readers> parts) const {
    return parts.empty() ? unfinished_[item.queryBegin] == unfinished_[item.queryBegin + item.queryCount]
                         : areComplete(parts);
  }
  bool areComplete(std::span<const Readers> parts) const;
  template <typename Callback> void forEachItem(Plan &plan, Callback callback) const;
  support::Result<void> giveSlots(bool mayWriteOutput, Plan &plan);
  void makeMergeMap(Plan &plan);

  int itemCount_ = 0, runCount_ = 0, tailCount_ = 0; ///< so far
  std::vector<Readers> parts_;  ///< of items whose readers are several intervals, in order
  std::vector<int> partials_;   ///< of each query: how many items it reads
  std::vector<int> unfinished_; ///< of each query: how many before it read other than one item
  std::vector<char> isWritten_; ///< of each query
  std::vector<int> cursor_;     ///< of each query: its next place in the merge map
};

/// Gives each item to a phase by its rows, heaviest first within a phase, ties in plan order. Linear.
class PhaseSorter {
public:
  void sort(const config::Config &config, int ratio, Plan &plan);

private:
  /// What to sort by, above the index of the item.
  using Key = std::uint64_t;
  static constexpr int kIndexBits = 28;
  static constexpr int kDigitBits = 11;
  static constexpr Key kDigits = Key{1} << kDigitBits;
  static std::size_t digit(Key key, int shift) { return key >> shift & (kDigits - 1); }
  void countDigits(int shift);
  void sortByDigit(int shift);
  void placeByDigit(int shift, const std::vector<abi::Item> &items);

  std::array<int, kDigits> begin_;
  std::vector<Key> keys_, sorted_;
  std::vector<abi::Item> items_;
  std::vector<int> placed_;
};

} // namespace deft::plan
