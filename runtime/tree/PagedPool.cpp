#include "runtime/tree/PagedPool.h"

#include "runtime/tree/KvTree.h"
#include "runtime/tree/TreeError.h"

#include <algorithm>
#include <climits>
#include <string>

namespace deft::tree {

using support::Error;
using support::Result;

namespace {

/// Places in the table that a range which begins to grow keeps behind it, in pages. Later ones double, so a
/// range of n pages moves at most log n times.
constexpr std::int64_t kFirstReserve = 8;

} // namespace

Result<PagedPool> PagedPool::make(const PoolOptions &options) {
  if (options.pageSize < 0 || options.pageSize > KvTree::kMaxTokens)
    return wrong("page size " + std::to_string(options.pageSize) + ", must be 0 to " +
                 std::to_string(KvTree::kMaxTokens));
  // A page's number travels as int, and so does a slot of a contiguous cache.
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
  std::string unit = pageSize_ == 0 ? " token" : " page";
  unit += needed == 1 ? "" : "s";
  if (pageSize_ > 0)
    unit += " of " + std::to_string(pageSize_) + " tokens";
  std::string message = "out of space: " + std::to_string(needed) + unit + " needed, " +
                        std::to_string(freePages()) + " of " + std::to_string(pages_) + " free";
  if (needed > freePages())
    return wrong(std::move(message), "prune branches, or make the pool larger");
  if (pageSize_ == 0)
    return wrong(std::move(message) + ", but not together", "with pages, free tokens need not be together");
  return wrong(std::move(message) + ", but not in the page table");
}

/// Places for `needed` pages of the table and, if there is room, `reserve` behind them.
std::optional<std::int64_t> PagedPool::takeAddresses(std::int64_t needed, std::int64_t &reserve) {
  if (const auto begin = addresses_.take(needed + reserve))
    return begin;
  reserve = 0;
  return addresses_.take(needed);
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
    return; // nobody reads it, so no copy of the table needs to hear of it
  changedBegin_ = changedBegin_ == changedEnd_ ? address : std::min(changedBegin_, address);
  changedEnd_ = std::max(changedEnd_, address + 1);
}

/// The caller has seen that there is one.
int PagedPool::takePage() {
  if (freePages_.empty()) {
    pageStates_.emplace_back();
    return static_cast<int>(pageStates_.size()) - 1;
  }
  const int page = freePages_.back();
  freePages_.pop_back();
  return page;
}

/// Gives the addresses [begin, end) pages of their own and one user; the last page is filled up to
/// `endToken`, a location.
void PagedPool::fillNewPages(std::int64_t begin, std::int64_t end, std::int64_t endToken) {
  if (end > static_cast<std::int64_t>(users_.size()))
    users_.resize(static_cast<std::size_t>(end), 0);
  for (std::int64_t address = begin; address < end; ++address) {
    users_[address] = 1;
    if (pageSize_ == 0)
      continue;
    const int page = takePage();
    pageStates_[page] = {1, static_cast<int>(std::min<std::int64_t>(endToken - address * unit_, unit_))};
    setTable(address, page);
  }
}

/// One range less has tokens in the table's pages [begin, end).
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
  fillNewPages(*begin, *begin + needed, *begin * unit_ + total);

  std::vector<int> ranges;
  std::int64_t location = *begin * unit_;
  for (int count : tokens) {
    const Entry entry{count == 0 ? 0 : static_cast<int>(location), count, 0, true};
    // The first in a page is the user that fillNewPages counted.
    if (count > 0 && location % unit_ != 0)
      ++users_[firstPage(entry)];
    ranges.push_back(newRange(entry));
    location += count;
  }
  return ranges;
}

/// Whether the slots behind the range's last token, in its page, can be its own.
bool PagedPool::ownsRestOfLastPage(const Entry &entry) const {
  const std::int64_t address = endPage(entry) - 1;
  const PageState &page = pageStates_[table_[address]];
  const int end = (entry.location + entry.tokens) % unit_;
  return page.fill == end || (users_[address] == 1 && page.entries == 1);
}

Result<std::vector<TokenCopy>> PagedPool::append(int range, int tokens) {
  if (auto checked = checkRange(range, "append to"); !checked)
    return checked.error();
  Entry &entry = ranges_[range];
  if (tokens < 0 || tokens > KvTree::kMaxTokens - entry.tokens)
    return wrong(std::to_string(tokens) + " tokens to append to a range of " + std::to_string(entry.tokens) +
                 ", must be 0 to " + std::to_string(KvTree::kMaxTokens - entry.tokens));
  if (tokens == 0)
    return std::vector<TokenCopy>();
  auto copies = tryAppend(entry, tokens);
  if (!copies && reserved_ > 0) { // what others only keep for later may be what lacks
    dropReserves();
    copies = tryAppend(entry, tokens);
  }
  return copies;
}

Result<std::vector<TokenCopy>> PagedPool::tryAppend(Entry &entry, int tokens) {
  if (entry.tokens == 0)
    return moveAndAppend(entry, tokens, false);

  const int used = (entry.location + entry.tokens) % unit_; // slots of the last page, 0: all
  if (used != 0 && !ownsRestOfLastPage(entry))
    return moveAndAppend(entry, tokens, true);
  const int inLast = used == 0 ? 0 : std::min(tokens, unit_ - used);
  const std::int64_t more = pagesFor(tokens - inLast);
  const std::int64_t end = endPage(entry);
  if (more > 0) {
    if (more > freePages())
      return outOfSpace(more);
    if (entry.reserve >= more) {
      entry.reserve -= more;
      reserved_ -= more;
    } else if (addresses_.takeAt(end + entry.reserve, more - entry.reserve)) {
      reserved_ -= entry.reserve;
      entry.reserve = 0;
    } else {
      return moveAndAppend(entry, tokens, false);
    }
  }
  entry.tokens += tokens;
  if (inLast > 0)
    pageStates_[table_[end - 1]].fill = used + inLast;
  fillNewPages(end, end + more, static_cast<std::int64_t>(entry.location) + entry.tokens);
  return std::vector<TokenCopy>();
}

/// Grows a range at other places of the table. Its pages go with it, but for the last one where the range
/// must not write there: its tokens in it are copied to a page of its own.
Result<std::vector<TokenCopy>> PagedPool::moveAndAppend(Entry &entry, int tokens, bool copiesTail) {
  const std::int64_t first = firstPage(entry), end = endPage(entry);
  const std::int64_t kept = pageSize_ == 0 ? 0 : end - first - (copiesTail ? 1 : 0);
  const std::int64_t total = static_cast<std::int64_t>(entry.tokens) + tokens;
  // Tokens at the end that come to lie in new pages, from the beginning of the first of them.
  const int offset = entry.location % unit_; // of the first token in its page
  const std::int64_t inKept = kept == 0 ? 0 : kept * unit_ - offset;
  const std::int64_t keptTokens = std::min<std::int64_t>(inKept, entry.tokens);
  const std::int64_t inNew = kept == 0 ? total : total - inKept;
  const std::int64_t fresh = pagesFor(inNew); // at least one: else the range would have grown where it was
  if (fresh > freePages())
    return outOfSpace(fresh);
  std::int64_t reserve = std::max(kFirstReserve, pageSize_ == 0 ? (kept + fresh) / 2 : kept + fresh);
  if (pageSize_ == 0)
    reserve = std::min(reserve, addresses_.free() / 8); // here a reserve is memory that others lack
  const auto begin = takeAddresses(kept + fresh, reserve);
  if (!begin)
    return outOfSpace(fresh);

  const std::int64_t location = *begin * unit_ + (kept > 0 ? offset : 0);
  fillNewPages(*begin + kept, *begin + kept + fresh, location + total);
  for (std::int64_t i = 0; i < kept; ++i) {
    const int page = table_[first + i];
    users_[*begin + i] = 1;
    ++pageStates_[page].entries;
    setTable(*begin + i, page);
  }
  std::vector<TokenCopy> copies;
  if (const int copied = static_cast<int>(entry.tokens - keptTokens); copied > 0)
    copies.push_back({slotOf(static_cast<int>(entry.location + keptTokens)),
                      slotOf(static_cast<int>(location + keptTokens)), copied});

  addresses_.give(end, entry.reserve);
  reserved_ += reserve - entry.reserve;
  const Entry old = entry;
  entry = {static_cast<int>(location), static_cast<int>(total), reserve, true};
  if (old.tokens > 0)
    uncover(first, end);
  if (kept > 0 && !copiesTail)
    pageStates_[table_[*begin + kept - 1]].fill = unit_;
  return copies;
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
  if (lower.location % unit_ != 0)
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
    const int piece = pageSize_ == 0 ? tokens : std::min({tokens, unit_ - from % unit_, unit_ - to % unit_});
    TokenCopy *last = copies.empty() ? nullptr : &copies.back();
    if (last != nullptr && last->from + last->tokens == source && last->to + last->tokens == target)
      last->tokens += piece;
    else if (source != target)
      copies.push_back({source, target, piece});
    from += piece;
    to += piece;
    tokens -= piece;
  }
}

} // namespace deft::tree
