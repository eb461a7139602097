#include "runtime/tree/PagedPool.h"

#include "runtime/tree/KvTree.h"
#include "runtime/tree/TreeError.h"

#include <algorithm>
#include <climits>
#include <string>

namespace deft::tree {

using support::Error;
using support::Result;

Result<PagedPool> PagedPool::make(const PoolOptions &options) {
  if (options.pageSize < 0 || options.pageSize > KvTree::kMaxTokens)
    return wrong("page size " + std::to_string(options.pageSize) + ", must be 0 to " +
                 std::to_string(KvTree::kMaxTokens));
  // The number of a page, and of a slot of a contiguous cache, must fit into an int.
  const std::int64_t most = options.pageSize == 0 ? KvTree::kMaxTokens : INT_MAX;
  if (options.pages < 0 || options.pages > most)
    return wrong("a pool of " + std::to_string(options.pages) +
                 (options.pageSize == 0 ? " tokens" : " pages") + ", must be 0 to " + std::to_string(most));
  const std::int64_t addresses =
      options.pageSize == 0 ? options.pages : KvTree::kMaxTokens / options.pageSize;
  return PagedPool(options, addresses);
}

std::int64_t PagedPool::usedPages() const {
  return pageSize_ == 0 ? pages_ - addresses_.free() - reserved_
                        : static_cast<std::int64_t>(pageStates_.size() - freePages_.size());
}

Result<void> PagedPool::checkRange(int range, const char *what) const {
  if (isRange(range))
    return {};
  return wrong("there is no range " + std::to_string(range) + " to " + what);
}

Error PagedPool::outOfSpace(std::int64_t needed) const {
  std::string what = pageSize_ == 0 ? " token" : " page";
  what += needed == 1 ? "" : "s";
  if (pageSize_ > 0)
    what += " of " + std::to_string(pageSize_) + " tokens";
  std::string message = "out of space: " + std::to_string(needed) + what + " needed, " +
                        std::to_string(freePages()) + " of " + std::to_string(pages_) + " free";
  if (needed > freePages())
    return wrong(std::move(message), "prune branches, or make the pool larger");
  if (pageSize_ == 0)
    return wrong(std::move(message) + ", but only " + std::to_string(addresses_.largestHole()) + " together",
                 "with pages, free tokens need not be adjacent");
  return wrong(std::move(message) + ", but not in the page table");
}

void PagedPool::dropReserves() {
  for (Entry &entry : ranges_)
    if (entry.isUsed && entry.reserve > 0) {
      addresses_.give(endPage(entry), entry.reserve);
      entry.reserve = 0;
    }
  reserved_ = 0;
}

int PagedPool::newRange(const Entry &entry) {
  if (freeRanges_.empty()) {
    ranges_.push_back(entry);
    return static_cast<int>(ranges_.size()) - 1;
  }
  const int index = freeRanges_.back();
  freeRanges_.pop_back();
  ranges_[index] = entry;
  return index;
}

void PagedPool::setTable(std::int64_t address, int page) {
  if (address >= static_cast<std::int64_t>(table_.size()))
    table_.resize(static_cast<std::size_t>(address) + 1, -1);
  table_[address] = page;
  if (page < 0)
    return; // no range reads it, so copies of the table need not know
  changedBegin_ = changedBegin_ == changedEnd_ ? address : std::min(changedBegin_, address);
  changedEnd_ = std::max(changedEnd_, address + 1);
  if (changedPlaces_.size() >= std::max<std::size_t>(kLeastRememberedChanges, table_.size())) {
    forgottenChanges_ += changedPlaces_.size();
    changedPlaces_.clear();
  }
  changedPlaces_.push_back(static_cast<int>(address));
}

/// The caller has checked that there is one.
int PagedPool::takePage() {
  if (freePages_.empty()) {
    pageStates_.emplace_back();
    return static_cast<int>(pageStates_.size()) - 1;
  }
  const int page = freePages_.back();
  freePages_.pop_back();
  return page;
}

/// Gives the addresses [begin, end) a page and one user each; `endToken`, a location, is the end of the used
/// slots in the last page.
void PagedPool::fillNewPages(std::int64_t begin, std::int64_t end, std::int64_t endToken) {
  if (end > static_cast<std::int64_t>(users_.size()))
    users_.resize(static_cast<std::size_t>(end), 0);
  for (std::int64_t address = begin; address < end; ++address) {
    users_[address] = 1;
    if (pageSize_ == 0)
      continue;
    const int page = takePage();
    pageStates_[page] = {
        1, static_cast<int>(std::min<std::int64_t>(endToken - address * slotsPerPage_, slotsPerPage_))};
    setTable(address, page);
  }
}

/// Counts one range less with tokens in the table's pages [begin, end).
void PagedPool::uncover(std::int64_t begin, std::int64_t end) {
  std::int64_t freeBegin = begin;
  const auto giveUntil = [&](std::int64_t address) {
    addresses_.give(freeBegin, address - freeBegin);
    freeBegin = address + 1;
  };
  for (std::int64_t address = begin; address < end; ++address) {
    if (--users_[address] > 0) {
      giveUntil(address);
      continue;
    }
    if (pageSize_ == 0)
      continue;
    const int page = table_[address];
    setTable(address, -1);
    if (--pageStates_[page].entries == 0)
      freePages_.push_back(page);
  }
  giveUntil(end);
}

Result<int> PagedPool::allocate(int tokens) {
  const auto ranges = allocateTogether(std::span(&tokens, 1));
  if (!ranges)
    return ranges.error();
  return ranges->front();
}

Result<std::vector<int>> PagedPool::allocateTogether(std::span<const int> tokens) {
  std::int64_t total = 0;
  for (int count : tokens) {
    if (count < 0)
      return wrong(std::to_string(count) + " tokens in a range, must not be negative");
    total += count;
  }
  const std::int64_t needed = pagesFor(total);
  if (needed > freePages())
    return outOfSpace(needed);
  auto begin = needed == 0 ? std::optional<std::int64_t>(0) : addresses_.take(needed);
  if (!begin) {
    dropReserves();
    begin = addresses_.take(needed);
  }
  if (!begin)
    return outOfSpace(needed);
  fillNewPages(*begin, *begin + needed, *begin * slotsPerPage_ + total);

  std::vector<int> ranges;
  std::int64_t location = *begin * slotsPerPage_;
  for (int count : tokens) {
    const Entry entry{count == 0 ? 0 : static_cast<int>(location), count, 0, true};
    // fillNewPages has counted the first range in a page as its user.
    if (count > 0 && location % slotsPerPage_ != 0)
      ++users_[firstPage(entry)];
    ranges.push_back(newRange(entry));
    location += count;
  }
  return ranges;
}

Result<int> PagedPool::split(int range, int position) {
  if (auto checked = checkRange(range, "split"); !checked)
    return checked.error();
  Entry &lower = ranges_[range];
  if (position <= 0 || position >= lower.tokens)
    return wrong("cannot split a range of " + std::to_string(lower.tokens) + " tokens at " +
                 std::to_string(position));
  const Entry upper{lower.location, position, 0, true};
  lower.location += position;
  lower.tokens -= position;
  if (lower.location % slotsPerPage_ != 0)
    ++users_[firstPage(lower)];
  return newRange(upper);
}

Result<int> PagedPool::share(int range, int tokens) {
  if (auto checked = checkRange(range, "share"); !checked)
    return checked.error();
  if (tokens < 0 || tokens > ranges_[range].tokens)
    return wrong("cannot share " + std::to_string(tokens) + " tokens of a range of " +
                 std::to_string(ranges_[range].tokens));
  const Entry entry{tokens == 0 ? 0 : ranges_[range].location, tokens, 0, true};
  for (std::int64_t address = firstPage(entry); address < endPage(entry); ++address)
    ++users_[address];
  return newRange(entry);
}

Result<void> PagedPool::release(int range) {
  if (auto checked = checkRange(range, "release"); !checked)
    return checked;
  Entry &entry = ranges_[range];
  addresses_.give(endPage(entry), entry.reserve);
  reserved_ -= entry.reserve;
  if (entry.tokens > 0)
    uncover(firstPage(entry), endPage(entry));
  entry = {};
  freeRanges_.push_back(range);
  return {};
}

void PagedPool::addCopies(int from, int to, int tokens, std::vector<TokenCopy> &copies) const {
  while (tokens > 0) {
    const std::int64_t source = slotOf(from), target = slotOf(to);
    const int together =
        pageSize_ == 0
            ? tokens
            : std::min({tokens, slotsPerPage_ - from % slotsPerPage_, slotsPerPage_ - to % slotsPerPage_});
    TokenCopy *last = copies.empty() ? nullptr : &copies.back();
    if (last != nullptr && last->from + last->tokens == source && last->to + last->tokens == target)
      last->tokens += together;
    else if (source != target)
      copies.push_back({source, target, together});
    from += together;
    to += together;
    tokens -= together;
  }
}

} // namespace deft::tree
