#include "runtime/plan/TreeView.h"

#include <algorithm>

namespace deft::plan {

/// Subtrees move as a whole, and only where siblings change places. In a tree where none do, this looks at
/// each marked place twice.
void TreeView::putLast(const std::vector<int> &last) {
  const int count = placeCount();
  isLast_.assign(places.size(), 0);
  mixed_.assign(places.size() + 1, 0);
  Place *const first = places.data();
  char *const isMarked = isLast_.data(), *const mixed = mixed_.data();
  for (Place &place : places)
    place.firstEnd = place.readersEnd;
  for (const int p : last) {
    const Place &place = first[p];
    isMarked[p] = 1;
    first[place.parent].firstEnd -= place.readersEnd - place.ownBegin;
  }
  bool isMixed = false;
  for (const int p : last) {
    const Place &place = first[p];
    const bool isBefore = place.ownBegin < first[place.parent].firstEnd && place.ownBegin < place.readersEnd;
    mixed[isBefore ? place.parent : count] = 1; // the entry behind the last place is a dummy
    isMixed |= isBefore;
  }
  if (!isMixed)
    return;
  shifts_.resize(places.size());
  for (int p = 0; (p = static_cast<int>(std::find(mixed + p, mixed + count, 1) - mixed)) < count;) {
    const Place &place = places[p];
    shiftChildren(place, place.ownEnd);
    moveSubtrees(p + 1, place.subtreeEnd, place.readersEnd);
    p = place.subtreeEnd;
  }
}

/// The siblings are [begin, end) with their subtrees, and shifts_ has their moves. The readers of the last
/// one end at `queryEnd`.
void TreeView::moveSubtrees(int begin, int end, int queryEnd) {
  int *const shifts = shifts_.data();
  const char *const mixed = mixed_.data();
  for (int p = begin; p < end; ++p) {
    const Place &place = places[p];
    const int parent = place.parent;
    shifts[p] = shifts[mixed[parent] != 0 ? p : parent]; // a branch would be mispredicted
    if (mixed[p] != 0)
      shiftChildren(place, place.ownEnd + shifts[p]);
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

/// Moves the queries of a place's children to `at` and on, those of marked children behind the others.
void TreeView::shiftChildren(const Place &place, int at) {
  const Place *const first = places.data();
  const char *const isLast = isLast_.data();
  int *const shifts = shifts_.data();
  int next[] = {at, at + place.firstEnd - place.ownEnd};
  for (int c = static_cast<int>(&place - first) + 1; c < place.subtreeEnd; c = first[c].subtreeEnd) {
    int &to = next[int{isLast[c]}]; // a branch would be mispredicted
    shifts[c] = to - first[c].ownBegin;
    to += first[c].readersEnd - first[c].ownBegin;
  }
}

/// Moves everything that belongs to neighbouring places, which is contiguous.
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
    place.firstEnd += shift;
    for (int s = place.segmentBegin; s < place.segmentEnd; ++s) {
      segments[s].queryBegin += shift;
      segments[s].queryEnd += shift;
    }
  }
  // Their leaves are contiguous as well.
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
