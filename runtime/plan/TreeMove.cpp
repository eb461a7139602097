#include "runtime/plan/TreeView.h"

#include <algorithm>

namespace deft::plan {

/// Subtrees move as wholes, and only where siblings change places: in trees where that is nowhere, this is
/// one look at each marked place.
void TreeView::putLast(const std::vector<char> &isLast) {
  const int count = placeCount();
  // Of each parent: whether a marked child comes before another one.
  mixed_.assign(places.size(), 0);
  char *const mixed = mixed_.data();
  bool areRootsMixed = false;
  for (int p = 0; p < count; ++p) {
    const Place &place = places[p];
    if (isLast[p] == 0 || place.ownBegin == place.readersEnd)
      continue;
    int next = place.subtreeEnd;
    while (next < count && places[next].ownBegin == places[next].readersEnd)
      next = places[next].subtreeEnd;
    if (next == count || places[next].parent != place.parent || isLast[next] != 0)
      continue;
    if (place.parent < 0)
      areRootsMixed = true;
    else
      mixed[place.parent] = 1;
  }
  shifts_.resize(places.size());
  if (areRootsMixed) {
    shiftChildren(0, count, isLast, 0);
    moveSubtrees(0, count, queryCount(), isLast);
    return;
  }
  for (int p = 0; (p = static_cast<int>(std::find(mixed + p, mixed + count, 1) - mixed)) < count;) {
    const Place &place = places[p];
    shiftChildren(p + 1, place.subtreeEnd, isLast, place.ownEnd);
    moveSubtrees(p + 1, place.subtreeEnd, place.readersEnd, isLast);
    p = place.subtreeEnd;
  }
}

/// Siblings are [begin, end) with their subtrees, and know how far they move; the last of them is read up to
/// `queryEnd`.
void TreeView::moveSubtrees(int begin, int end, int queryEnd, const std::vector<char> &isLast) {
  int *const shifts = shifts_.data();
  const char *const mixed = mixed_.data();
  for (int p = begin; p < end; ++p) {
    const Place &place = places[p];
    const int parent = place.parent;
    shifts[p] = shifts[parent < 0 || mixed[parent] != 0 ? p : parent]; // nobody can predict it: no branch
    if (mixed[p] != 0)
      shiftChildren(p + 1, place.subtreeEnd, isLast, place.ownEnd + shifts[p]);
  }
  const int from = places[begin].ownBegin;
  const auto keep = [&](const std::vector<int> &now, std::vector<int> &old) {
    old.resize(std::max(old.size(), now.size()));
    std::copy(now.begin() + from, now.begin() + queryEnd, old.begin() + from);
  };
  keep(callerIndex, before_.callerIndex);
  keep(queryPos, before_.queryPos);
  for (int next; begin < end; begin = next) {
    for (next = begin + 1; next < end && shifts[next] == shifts[begin];)
      ++next;
    if (shifts[begin] != 0)
      move(begin, next, shifts[begin]);
  }
}

/// Siblings are [begin, end) with their subtrees; their queries go to `at` on.
void TreeView::shiftChildren(int begin, int end, const std::vector<char> &isLast, int at) {
  for (const bool marked : {false, true})
    for (int c = begin; c < end; c = places[c].subtreeEnd) {
      if ((isLast[c] != 0) != marked)
        continue;
      shifts_[c] = at - places[c].ownBegin;
      at += places[c].readersEnd - places[c].ownBegin;
    }
}

/// What belongs to neighbouring places: it lies side by side.
void TreeView::move(int begin, int end, int shift) {
  const int from = places[begin].ownBegin, count = places[end - 1].ownEnd - from;
  const auto copy = [&](const std::vector<int> &old, std::vector<int> &now) {
    std::copy_n(old.begin() + from, count, now.begin() + from + shift);
  };
  copy(before_.callerIndex, callerIndex);
  copy(before_.queryPos, queryPos);
  for (int p = begin; p < end; ++p) {
    Place &place = places[p];
    place.ownBegin += shift;
    place.ownEnd += shift;
    place.readersEnd += shift;
    for (int s = place.segmentBegin; s < place.segmentEnd; ++s) {
      segments[s].queryBegin += shift;
      segments[s].queryEnd += shift;
    }
  }
  // Their leaves lie side by side, too.
  while (begin < end && places[begin].leaf < 0)
    ++begin;
  if (begin == end)
    return;
  int last = end - 1;
  while (places[last].leaf < 0)
    --last;
  for (int leaf = places[begin].leaf; leaf <= places[last].leaf; ++leaf) {
    leaves[leaf].followBegin += shift;
    leaves[leaf].followEnd += shift;
  }
}

} // namespace deft::plan
