#include "runtime/plan/TreeView.h"

#include <algorithm>

namespace deft::plan {

/// Subtrees move as wholes: how far is decided from the root down, and only where siblings change places.
void TreeView::putLast(const std::vector<char> &isLast) {
  const int count = placeCount();
  // Per parent: 1 once a marked child was seen, 3 once one without a mark came after it.
  mixed_.assign(places.size(), 0);
  char *const mixed = mixed_.data();
  char roots = 0;
  for (int p = 0; p < count; ++p) {
    const Place &place = places[p];
    if (place.ownBegin == place.readersEnd)
      continue;
    char &ofParent = place.parent < 0 ? roots : mixed[place.parent];
    ofParent = static_cast<char>(ofParent | (isLast[p] ? 1 : (ofParent & 1) << 1));
  }
  shifts_.resize(places.size());
  if (roots > 1)
    shiftChildren(0, count, isLast, 0);
  int *const shifts = shifts_.data();
  for (int p = 0; p < count; ++p) {
    const Place &place = places[p];
    const int parent = place.parent;
    if (parent < 0 ? roots <= 1 : mixed[parent] <= 1)
      shifts[p] = parent < 0 ? 0 : shifts[parent];
    if (mixed[p] > 1)
      shiftChildren(p + 1, place.subtreeEnd, isLast, place.ownEnd + shifts[p]);
  }
  before_.callerIndex = callerIndex;
  before_.queryPlace = queryPlace;
  before_.seen = seen;
  before_.queryPos = queryPos;
  for (int begin = 0, end; begin < count; begin = end) {
    for (end = begin + 1; end < count && shifts[end] == shifts[begin];)
      ++end;
    if (shifts[begin] != 0)
      move(begin, end, shifts[begin]);
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
  copy(before_.queryPlace, queryPlace);
  copy(before_.seen, seen);
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
    if (place.leaf >= 0) {
      leaves[place.leaf].followBegin += shift;
      leaves[place.leaf].followEnd += shift;
    }
  }
}

} // namespace deft::plan
