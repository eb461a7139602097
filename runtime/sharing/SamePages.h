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

/// The first page with a negative id among [begin, end) of a row; `end` where there is none.
inline int firstNegative(const int *row, int begin, int end) {
  for (; end - begin >= kPagesAtOnce; begin += kPagesAtOnce) {
    int bits = 0; // no branch and as many each time, so that a processor takes several at once
    for (int page = 0; page < kPagesAtOnce; ++page)
      bits |= row[begin + page];
    if (bits < 0)
      break;
  }
  return static_cast<int>(std::find_if(row + begin, row + end, [](int page) { return page < 0; }) - row);
}

} // namespace deft::sharing
