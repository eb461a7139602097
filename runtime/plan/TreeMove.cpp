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
    shiftChildren(0, count, 0, isLast);
  before_.callerIndex = callerIndex;
  before_.queryPlace = queryPlace;
  before_.seen = seen;
  before_.queryPos = queryPos;
  int *const shifts = shifts_.data();
  for (int p = 0; p < count; ++p) {
    Place &place = places[p];
    const char siblings = place.parent < 0 ? roots : mixed[place.parent];
    if (siblings <= 1)
      shifts[p] = place.parent < 0 ? 0 : shifts[place.parent];
    if (shifts[p] != 0)
      moveOwn(place, shifts[p]);
    if (mixed[p] > 1)
      shiftChildren(p + 1, place.subtreeEnd, place.ownEnd, isLast);
  }
}

/// Siblings are [begin, end) with their subtrees; their queries go to `at` on.
void TreeView::shiftChildren(int begin, int end, int at, const std::vector<char> &isLast) {
  for (const bool marked : {false, true})
    for (int c = begin; c < end; c = places[c].subtreeEnd) {
      if ((isLast[c] != 0) != marked)
        continue;
      shifts_[c] = at - places[c].ownBegin;
      at += places[c].readersEnd - places[c].ownBegin;
    }
}

inline void TreeView::moveOwn(Place &place, int shift) {
  for (int i = place.ownBegin; i < place.ownEnd; ++i) {
    callerIndex[i + shift] = before_.callerIndex[i];
    queryPlace[i + shift] = before_.queryPlace[i];
    seen[i + shift] = before_.seen[i];
    queryPos[i + shift] = before_.queryPos[i];
  }
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

} // namespace deft::plan
