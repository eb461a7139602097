#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

/// Looks at rows of page ids, as fast as memory gives them.
namespace deft::sharing {

/// Pages that are looked at together: enough for a call of memcmp, and few enough to look at once more.
inline constexpr int kPagesAtOnce = 64;

/// How many of `count` pages, from the first on, are the same in both rows.
inline int samePages(const int *row, const int *other, int count) {
  int same = 0;
  while (count - same >= kPagesAtOnce &&
         std::memcmp(row + same, other + same, kPagesAtOnce * sizeof(int)) == 0)
    same += kPagesAtOnce;
  return static_cast<int>(std::mismatch(row + same, row + count, other + same).first - row);
}

/// The first page among [begin, end) of a row whose id is not one from 0 to `last`; `end` where there is
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
