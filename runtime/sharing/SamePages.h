#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

/// Compares rows of page ids at the speed of memory.
namespace deft::sharing {

/// Pages that are compared together: enough for a call of memcmp, and few enough to compare twice.
inline constexpr int kPagesAtOnce = 64;

/// How many of `count` pages, from the first on, are equal in both rows.
inline int samePages(const int *row, const int *other, int count) {
  int same = 0;
  while (count - same >= kPagesAtOnce &&
         std::memcmp(row + same, other + same, kPagesAtOnce * sizeof(int)) == 0)
    same += kPagesAtOnce;
  return static_cast<int>(std::mismatch(row + same, row + count, other + same).first - row);
}

/// The first page among [begin, end) of a row whose id is not between 0 and `last`; `end` if there is
/// none.
inline int firstOutside(const int *row, int begin, int end, int last) {
  for (; end - begin >= kPagesAtOnce; begin += kPagesAtOnce) {
    unsigned bits = 0; // no branch and as many each time, so that a processor takes several at once
    for (int page = 0; page < kPagesAtOnce; ++page) {
      const auto id = static_cast<unsigned>(row[begin + page]);
      bits |=
          id | (static_cast<unsigned>(last) - id); // the uppermost is set where one of the two is negative
    }
    if (bits >> 31 != 0)
      break;
  }
  const auto isOutside = [&](int page) { return page < 0 || page > last; };
  return static_cast<int>(std::find_if(row + begin, row + end, isOutside) - row);
}

} // namespace deft::sharing
