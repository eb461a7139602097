#pragma once

#include "runtime/sharing/SamePages.h"

#include <cstddef>
#include <vector>

namespace deft::sharing {

/// Copies of members' rows from the last comparison, for callers that do not learn about changes or want to
/// verify them. They need as much memory as the page table, and each comparison reads all of it.
class RowCopies {
public:
  /// Keeps the first `pages` pages; those that are already kept are not read again.
  void extend(int member, const int *row, int pages) {
    if (static_cast<std::size_t>(member) >= rows_.size())
      rows_.resize(static_cast<std::size_t>(member) + 1);
    std::vector<int> &own = rows_[static_cast<std::size_t>(member)];
    own.insert(own.end(), row + own.size(), row + pages);
  }

  void forget(int member) {
    if (static_cast<std::size_t>(member) < rows_.size())
      rows_[static_cast<std::size_t>(member)].clear();
  }
  void clear() { rows_.clear(); }

  /// The first kept page that differs from the row; -1: none does.
  int firstChange(int member, const int *row) const {
    const std::vector<int> &own = rows_[static_cast<std::size_t>(member)];
    const int pages = static_cast<int>(own.size());
    const int same = samePages(own.data(), row, pages);
    return same < pages ? same : -1;
  }
  int page(int member, int at) const {
    return rows_[static_cast<std::size_t>(member)][static_cast<std::size_t>(at)];
  }

private:
  std::vector<std::vector<int>> rows_;
};

} // namespace deft::sharing
