#pragma once

#include "compiler/support/Result.h"
#include "runtime/tree/AddressSpace.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace deft::tree {

/// Tokens to copy from slot to slot in the memory that a pool manages. A slot is page * page size + place in
/// the page (contiguous: the place in the cache). 64 bits, since elements in a pool may exceed 2^31.
struct TokenCopy {
  std::int64_t from = 0;
  std::int64_t to = 0;
  int tokens = 0;

  bool operator==(const TokenCopy &) const = default;
};

struct PoolOptions {
  int pageSize = 16;      ///< tokens of a page; 0: one contiguous cache without pages
  std::int64_t pages = 0; ///< physical pages; contiguous: tokens
};

/// Assigns the slots of a KV cache to tokens; the caller owns the bytes. A range is a sequence of tokens in
/// fixed order: a node of a tree. Its places in the page table are consecutive (its location), so a plan
/// describes it by start and length, while its pages may lie anywhere. Without pages the location is the
/// slot.
///
/// Ranges may share pages: ranges that were allocated together or split, and those made by share(). A growing
/// range fills its last page if no other range uses the rest, else it gets a copy of its part of that page.
/// If the next places of the table are taken, the range moves: its location changes, but its pages do not
/// (contiguous: its tokens are copied).
///
/// A failed call changes nothing. Make the copies that calls return in the order of the calls, before you
/// write to any slot from this call or a later one. The copies of one call may run at the same time.
class PagedPool {
public:
  struct Range {
    int location = 0; ///< 0 while it is empty
    int tokens = 0;
  };

  /// Limit of remembered changes of the page table; a table with more entries remembers that many.
  static constexpr int kLeastRememberedChanges = 4096;

  static support::Result<PagedPool> make(const PoolOptions &options);

  int pageSize() const { return pageSize_; }
  std::int64_t pages() const { return pages_; }
  std::int64_t slots() const { return pages_ * slotsPerPage_; }
  std::int64_t usedPages() const;
  std::int64_t freePages() const { return pages_ - usedPages(); }
  /// The most consecutive free pages of the table (contiguous: tokens), not counting pages that are reserved
  /// for growing ranges.
  std::int64_t largestStretch() const { return addresses_.largestHole(); }

  /// A new range. If it has tokens, it begins a page.
  support::Result<int> allocate(int tokens);

  /// New consecutive ranges, which share pages: the best layout for the tokens of a token tree.
  support::Result<std::vector<int>> allocateTogether(std::span<const int> tokens);

  /// Grows a range at its end.
  support::Result<std::vector<TokenCopy>> append(int range, int tokens);

  /// Cuts a range before its token `position`. Returns the new range, which has the first part.
  support::Result<int> split(int range, int position);

  /// A new range with the same first tokens, in the same pages.
  support::Result<int> share(int range, int tokens);

  support::Result<void> release(int range);

  bool isRange(int range) const {
    return range >= 0 && range < static_cast<int>(ranges_.size()) && ranges_[range].isUsed;
  }
  Range range(int range) const { return {ranges_[range].location, ranges_[range].tokens}; }

  /// The physical page of each page of the table; -1: none. Empty without pages. Only calls of this class
  /// change it.
  const std::vector<int> &pageTable() const { return table_; }
  /// Pages of the table that changed since the last markTableRead: [begin, end), empty when begin == end.
  std::int64_t changedTableBegin() const { return changedBegin_; }
  std::int64_t changedTableEnd() const { return changedEnd_; }
  void markTableRead() { changedBegin_ = changedEnd_ = 0; }

  /// For readers that keep copies of the table: the number of changes so far, and the places changed since an
  /// earlier number, perhaps with repeats. None: too long ago, so read the whole table.
  std::uint64_t tableChanges() const { return forgottenChanges_ + changedPlaces_.size(); }
  std::optional<std::span<const int>> changesSince(std::uint64_t changes) const {
    if (changes < forgottenChanges_)
      return std::nullopt;
    return std::span(changedPlaces_).subspan(static_cast<std::size_t>(changes - forgottenChanges_));
  }

  /// The slot of the token at a location.
  std::int64_t slotOf(int location) const {
    return pageSize_ == 0
               ? location
               : static_cast<std::int64_t>(table_[location / pageSize_]) * pageSize_ + location % pageSize_;
  }

  /// Appends the copies that move tokens from one location to another, as few as the pages allow.
  void addCopies(int fromLocation, int toLocation, int tokens, std::vector<TokenCopy> &copies) const;

  /// Recomputes every count, slowly, and describes the first mismatch: for tests.
  support::Result<void> verify() const;

private:
  struct Entry {
    int location = 0;
    int tokens = 0;
    std::int64_t reserve = 0; ///< pages of the table behind its last, reserved for growth
    bool isUsed = false;
  };
  struct PageState {
    int entries = 0; ///< entries of the table that name it
    int fill = 0;    ///< slots from here on hold no token
  };

  PagedPool(const PoolOptions &options, std::int64_t addresses)
      : pageSize_(options.pageSize), slotsPerPage_(options.pageSize == 0 ? 1 : options.pageSize),
        pages_(options.pages), addresses_(addresses) {}

  std::int64_t pagesFor(std::int64_t tokens) const { return (tokens + slotsPerPage_ - 1) / slotsPerPage_; }
  std::int64_t firstPage(const Entry &entry) const { return entry.location / slotsPerPage_; }
  std::int64_t endPage(const Entry &entry) const {
    return entry.tokens == 0 ? firstPage(entry)
                             : pagesFor(static_cast<std::int64_t>(entry.location) + entry.tokens);
  }

  support::Result<void> checkRange(int range, const char *what) const;
  support::Error outOfSpace(std::int64_t pagesNeeded) const;
  std::optional<std::int64_t> takeAddresses(std::int64_t needed, std::int64_t &reserve);
  void dropReserves();
  int newRange(const Entry &entry);
  void fillNewPages(std::int64_t begin, std::int64_t end, std::int64_t endToken);
  void uncover(std::int64_t begin, std::int64_t end);
  void setTable(std::int64_t address, int page);
  int takePage();
  bool ownsRestOfLastPage(const Entry &entry) const;
  support::Result<std::vector<TokenCopy>> tryAppend(Entry &entry, int tokens);
  support::Result<std::vector<TokenCopy>> moveAndAppend(Entry &entry, int tokens, bool copiesTail);

  int pageSize_, slotsPerPage_;
  std::int64_t pages_;
  AddressSpace addresses_; ///< pages of the table; contiguous: the slots
  std::int64_t reserved_ = 0;
  std::vector<int> table_;
  std::vector<int> users_; ///< for each page of the table (contiguous: slot): the ranges with tokens in it
  std::vector<PageState> pageStates_; ///< for each physical page that was ever used
  std::vector<int> freePages_;
  std::vector<Entry> ranges_;
  std::vector<int> freeRanges_;
  std::int64_t changedBegin_ = 0, changedEnd_ = 0;
  std::vector<int> changedPlaces_; ///< at most kLeastRememberedChanges, or the table's size
  std::uint64_t forgottenChanges_ = 0;
};

} // namespace deft::tree
