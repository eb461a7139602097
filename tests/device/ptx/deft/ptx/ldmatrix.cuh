#pragma once

#include "tests/device/Conflicts.h"
#include "tests/device/Words.h"

namespace deft::ptx {

/// Four matrices of 8 rows of 16 bytes, of which eight lanes each name the rows.
inline void ldmatrix4(unsigned (&r)[4], unsigned shared, bool isTransposed) {
  test::Block &block = test::Block::now();
  block.shared(shared, 16);
  const auto rows = block.meet(isTransposed ? "ldmatrix.trans" : "ldmatrix", shared);
  const unsigned lane = test::Block::lane();
  if (lane % 8 == 0)
    test::countConflicts(rows, lane);
  const auto element = [&](unsigned matrix, unsigned row, unsigned column) {
    std::uint16_t bits;
    std::memcpy(&bits, block.shared(rows[matrix * 8 + row] + column * 2, 2), 2);
    return unsigned{bits};
  };
  for (unsigned m = 0; m < 4; ++m) {
    const unsigned across = lane / 4, along = lane % 4 * 2;
    r[m] = isTransposed ? element(m, along, across) | element(m, along + 1, across) << 16
                        : element(m, across, along) | element(m, across, along + 1) << 16;
  }
}

inline void ldmatrix4(unsigned (&r)[4], unsigned shared) { ldmatrix4(r, shared, false); }
inline void ldmatrix4Transposed(unsigned (&r)[4], unsigned shared) { ldmatrix4(r, shared, true); }

} // namespace deft::ptx
