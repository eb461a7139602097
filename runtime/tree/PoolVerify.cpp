#include "runtime/tree/PagedPool.h"

#include "runtime/tree/KvTree.h"
#include "runtime/tree/TreeError.h"

#include <algorithm>
#include <string>

namespace deft::tree {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

Error broken(const std::string &what, std::int64_t index) {
  return Error{ErrorCode::Internal, what + " " + std::to_string(index), ""};
}

} // namespace

Result<void> PagedPool::verify() const {
  std::vector<int> users(users_.size(), 0);
  std::int64_t taken = 0, reserved = 0;
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    const Entry &entry = ranges_[i];
    if (!entry.isUsed)
      continue;
    reserved += entry.reserve;
    for (std::int64_t address = firstPage(entry); address < endPage(entry); ++address) {
      if (address >= static_cast<std::int64_t>(users.size()))
        return broken("a page of the table without user, of range", static_cast<std::int64_t>(i));
      taken += users[address]++ == 0;
      if (pageSize_ == 0)
        continue;
      const int page = table_[address];
      if (page < 0 || page >= static_cast<int>(pageStates_.size()))
        return broken("no physical page at page of the table", address);
      const std::int64_t end =
          static_cast<std::int64_t>(entry.location) + entry.tokens - address * slotsPerPage_;
      if (std::min<std::int64_t>(end, slotsPerPage_) > pageStates_[page].fill)
        return broken("tokens behind the fill of page", page);
    }
  }
  for (std::size_t i = 0; i < users.size(); ++i)
    if (users[i] != users_[i])
      return broken("wrong number of users of page of the table", static_cast<std::int64_t>(i));
  const std::int64_t limit = pageSize_ == 0 ? pages_ : KvTree::kMaxTokens / pageSize_;
  if (reserved != reserved_ || addresses_.free() != limit - taken - reserved)
    return broken("places of the table were lost or used twice, free are", addresses_.free());

  std::vector<int> entries(pageStates_.size(), 0);
  for (std::size_t i = 0; i < table_.size(); ++i)
    if (table_[i] >= 0) {
      if (users[i] == 0)
        return broken("a page without user at page of the table", static_cast<std::int64_t>(i));
      ++entries[table_[i]];
    }
  for (int page : freePages_)
    if (--entries[page] != -1) // free once, and not in any entry
      return broken("used or free twice: page", page);
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (entries[i] == 0 || (entries[i] > 0 && entries[i] != pageStates_[i].entries))
      return broken("lost or wrongly counted: page", static_cast<std::int64_t>(i));
  return {};
}

} // namespace deft::tree
