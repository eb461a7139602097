#pragma once

#include "runtime/sharing/SamePages.h"

#include <cstddef>
#include <vector>

namespace deft::sharing {

/// What the rows of members held when they were last looked at, for those who are not told what changed, or
/// do not believe it. Costs a page table's memory, and a look at all of it for each comparison.
class RowCopies {
public:
  /// Keeps pages up to so many; those that are kept already are not looked at.
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

  /// The first of the kept pages that the row does not hold any more; -1: it holds all of them.
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
