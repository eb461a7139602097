#pragma once

#include "deft/ptx/convert.cuh"

namespace deft::ptx {

/// What the lane with rows `lane / 4` and the next eight and depths 2 (lane % 4), ... has of a, and the one
/// with column `lane / 4` of b.
struct MmaOperands {
  unsigned a[4], b[2];
};

template <class Element> void mma16816(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  const auto lanes = test::Block::now().meet("mma.m16n8k16", MmaOperands{{a[0], a[1], a[2], a[3]}, {b0, b1}});
  const unsigned lane = test::Block::lane();
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned half = i / 2, column = lane % 4 * 2 + i % 2;
    for (unsigned k = 0; k < 16; k += 2) {
      const unsigned far = k / 8, quarter = k % 8 / 2;
      const float2 x = unpack2<Element>(lanes[lane / 4 * 4 + quarter].a[half + 2 * far]);
      const float2 y = unpack2<Element>(lanes[column * 4 + quarter].b[far]);
      c[i] += x.x * y.x + x.y * y.y;
    }
  }
}

} // namespace deft::ptx
