#include "runtime/tree/KvTree.h"
#include "runtime/tree/PagedPool.h"
#include "runtime/tree/TreeError.h"

#include <algorithm>
#include <string>

/// Ranges that grow: in their last page, directly behind it, or by moving to other places of the table.
namespace deft::tree {

using support::Result;

namespace {

/// Places in the table, in pages, that are reserved behind a range when it begins to grow. Later reserves
/// double, so a range of n pages moves at most log n times.
constexpr std::int64_t kFirstReserve = 8;

} // namespace

/// Takes places for `needed` pages of the table and, if there is room, `reserve` more behind them.
std::optional<std::int64_t> PagedPool::takeAddresses(std::int64_t needed, std::int64_t &reserve) {
  if (const auto begin = addresses_.take(needed + reserve))
    return begin;
  reserve = 0;
  return addresses_.take(needed);
}

/// Whether the range may use the slots behind its last token, in the same page.
bool PagedPool::ownsRestOfLastPage(const Entry &entry) const {
  const std::int64_t address = endPage(entry) - 1;
  const PageState &page = pageStates_[table_[address]];
  const int end = (entry.location + entry.tokens) % slotsPerPage_;
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
  if (!copies && reserved_ > 0) { // the missing places may be reserves of other ranges
    dropReserves();
    copies = tryAppend(entry, tokens);
  }
  return copies;
}

Result<std::vector<TokenCopy>> PagedPool::tryAppend(Entry &entry, int tokens) {
  if (entry.tokens == 0)
    return moveAndAppend(entry, tokens, false);

  const int used = (entry.location + entry.tokens) % slotsPerPage_; // slots of the last page; 0: all
  if (used != 0 && !ownsRestOfLastPage(entry))
    return moveAndAppend(entry, tokens, true);
  const int inLast = used == 0 ? 0 : std::min(tokens, slotsPerPage_ - used);
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

/// Moves a range to other places of the table and grows it. Its pages move along, except for the last one if
/// the range must not write there: its tokens in that page are copied to a page of its own.
Result<std::vector<TokenCopy>> PagedPool::moveAndAppend(Entry &entry, int tokens, bool copiesTail) {
  const std::int64_t first = firstPage(entry), end = endPage(entry);
  const std::int64_t kept = pageSize_ == 0 ? 0 : end - first - (copiesTail ? 1 : 0);
  const std::int64_t total = static_cast<std::int64_t>(entry.tokens) + tokens;
  // Tokens at the end that will lie in new pages, counted from the beginning of the first of these.
  const int offset = entry.location % slotsPerPage_; // of the first token in its page
  const std::int64_t inKept = kept == 0 ? 0 : kept * slotsPerPage_ - offset;
  const std::int64_t keptTokens = std::min<std::int64_t>(inKept, entry.tokens);
  const std::int64_t inNew = kept == 0 ? total : total - inKept;
  const std::int64_t fresh = pagesFor(inNew); // at least one: otherwise the range would grow in place
  if (fresh > freePages())
    return outOfSpace(fresh);
  std::int64_t reserve = std::max(kFirstReserve, pageSize_ == 0 ? (kept + fresh) / 2 : kept + fresh);
  if (pageSize_ == 0)
    reserve = std::min(reserve, addresses_.free() / 8); // here a reserve takes memory that others need
  const auto begin = takeAddresses(kept + fresh, reserve);
  if (!begin)
    return outOfSpace(fresh);

  const std::int64_t location = *begin * slotsPerPage_ + (kept > 0 ? offset : 0);
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
    pageStates_[table_[*begin + kept - 1]].fill = slotsPerPage_;
  return copies;
}

} // namespace deft::tree
