#pragma once

#include "tests/device/AttendCase.h"

namespace deft::test {

/// A config of a kernel that reads lists which a caller hands over.
template <class Base> struct Given : Base {
  static constexpr int kLists = 1;
  static constexpr bool kListsAreGiven = true;
};

/// Adds items of one query each, whose lists have holes, repeated tokens, and NaN tokens beside them.
template <class Launch> void addItemsOfLists(Launch &launch, int mostTokens) {
  std::mt19937 &random = launch.random();
  for (int items = draw(random, 1, 4); items > 0; --items)
    launch.add(randomItem(random, {.queries = 1,
                                   .runs = draw(random, 1, 6),
                                   .mostTokens = draw(random, 1, mostTokens),
                                   .places = launch.places()}));
  if (draw(random, 0, 2) == 0)
    launch.addEnd();
}

} // namespace deft::test
