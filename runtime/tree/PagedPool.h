#pragma once

#include "compiler/support/Result.h"
#include "runtime/tree/AddressSpace.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace deft::tree {

/// Tokens to copy in the memory that a pool manages, from slot to slot; a slot is page * page size + place in
/// the page (contiguous: the place in the cache). 64 bits: a pool may hold more than 2^31 tokens' elements.
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

/// Says which slots of a KV cache hold which tokens; the bytes are the caller's. A range is a run of tokens
/// that keeps its order: a node of a tree. It has consecutive places in the page table (its location), so
/// that a plan names it by start and length, while its pages lie anywhere. Without pages the location is the
/// slot itself.
///
/// Ranges may share pages: neighbours that were allocated together or split, and those that share() made.
/// A range that grows uses the rest of its last page if nobody else does, else takes a copy of its part of
/// that page. Where the places behind it in the table are taken, it moves to others: its location changes,
/// its pages do not (contiguous: its tokens are copied).
///
/// A call that fails changes nothing. The copies that a call returns are to be made in their order, before
/// anything is written to the slots that it or a later call hands out; those of one call can be made at once.
class PagedPool {
public:
  struct Range {
    int location = 0; ///< 0 while it is empty
    int tokens = 0;
  };

  /// So many changes of the page table are remembered, or as many as it has entries.
  static constexpr int kLeastRememberedChanges = 4096;

  static support::Result<PagedPool> make(const PoolOptions &options);

  int pageSize() const { return pageSize_; }
  std::int64_t pages() const { return pages_; }
  std::int64_t slots() const { return pages_ * slotsPerPage_; }
  std::int64_t usedPages() const;
  std::int64_t freePages() const { return pages_ - usedPages(); }
  /// The most pages (contiguous: tokens) that lie free together in the table, what ranges keep for later left
  /// out.
  std::int64_t largestStretch() const { return addresses_.largestHole(); }

  /// A new range, which begins a page where it has tokens.
  support::Result<int> allocate(int tokens);

  /// New ranges back to back, as the tokens of a token tree lie best: they share pages.
  support::Result<std::vector<int>> allocateTogether(std::span<const int> tokens);

  /// Grows a range at its end.
  support::Result<std::vector<TokenCopy>> append(int range, int tokens);

  /// Cuts a range before its token `position`; the new range, which is returned, has the first part.
  support::Result<int> split(int range, int position);

  /// A new range with the same first tokens, in the same pages.
  support::Result<int> share(int range, int tokens);

  support::Result<void> release(int range);

  bool isRange(int range) const {
    return range >= 0 && range < static_cast<int>(ranges_.size()) && ranges_[range].isUsed;
  }
  Range range(int range) const { return {ranges_[range].location, ranges_[range].tokens}; }

  /// The physical page of each page of the table, -1 where it has none; empty without pages. Entries change
  /// only by calls of this class.
  const std::vector<int> &pageTable() const { return table_; }
  /// Pages of the table that changed since the last markTableRead: [begin, end), empty when begin == end.
  std::int64_t changedTableBegin() const { return changedBegin_; }
  std::int64_t changedTableEnd() const { return changedEnd_; }
  void markTableRead() { changedBegin_ = changedEnd_ = 0; }

  /// For any number of readers with copies of the table: how often an entry was set so far, and the places
  /// set since then, some perhaps more than once. None: that is too long ago to be known, so read all of it.
  std::uint64_t tableChanges() const { return forgottenChanges_ + changedPlaces_.size(); }
  std::optional<std::span<const int>> changesSince(std::uint64_t changes) const {
    if (changes < forgottenChanges_)
      return std::nullopt;
    return std::span(changedPlaces_).subspan(static_cast<std::size_t>(changes - forgottenChanges_));
  }

  /// Where the token at a location lies.
  std::int64_t slotOf(int location) const {
    return pageSize_ == 0
               ? location
               : static_cast<std::int64_t>(table_[location / pageSize_]) * pageSize_ + location % pageSize_;
  }

  /// Adds the copies that bring tokens from a location to another, as few as the pages allow.
  void addCopies(int fromLocation, int toLocation, int tokens, std::vector<TokenCopy> &copies) const;

  /// Counts everything anew, slowly, and says what does not agree: for tests.
  support::Result<void> verify() const;

private:
  struct Entry {
    int location = 0;
    int tokens = 0;
    std::int64_t reserve = 0; ///< pages of the table behind its last, kept for it to grow
    bool isUsed = false;
  };
  struct PageState {
    int entries = 0; ///< of the table
    int fill = 0;    ///< no token lies in a slot from here on
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
  std::vector<int> users_; ///< of each page of the table (contiguous: slot): ranges with tokens in it
  std::vector<PageState> pageStates_; ///< of each physical page that was ever used
  std::vector<int> freePages_;
  std::vector<Entry> ranges_;
  std::vector<int> freeRanges_;
  std::int64_t changedBegin_ = 0, changedEnd_ = 0;
  std::vector<int> changedPlaces_; ///< as many as the table has, or some thousands
  std::uint64_t forgottenChanges_ = 0;
};

} // namespace deft::tree
