#pragma once

#include "tests/device/Block.h"

namespace deft::test {

/// Of eight rows of 16 bytes that are read at once: how many more rounds than one they take. Added up by all
/// reads since a test has set it to 0.
inline int conflicts = 0;

inline void countConflicts(const Lanes<unsigned> &rows, unsigned firstLane) {
  std::array<int, 8> rowsOfBank{};
  int most = 0;
  for (unsigned lane = firstLane; lane < firstLane + 8; ++lane)
    most = std::max(most, ++rowsOfBank[rows[lane] / 16 % 8]);
  conflicts += most - 1;
}

} // namespace deft::test
