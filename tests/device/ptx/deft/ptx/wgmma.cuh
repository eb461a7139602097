#pragma once

#include "deft/ptx/convert.cuh"

namespace deft::ptx {

/// As the instruction reads it: addresses in units of 16 bytes, the widest swizzle.
inline unsigned long long wgmmaDescriptor(unsigned shared, unsigned leading) {
  return (shared & 0x3ffff) >> 4 | static_cast<unsigned long long>(leading >> 4) << 16 | 64ull << 32 |
         1ull << 62;
}

inline void wgmmaFence() { test::Block::now().meet("wgmma.fence"); }
inline void wgmmaCommit() { test::Block::now().meet("wgmma.commit_group"); }
template <int kPending> void wgmmaWait() { test::Block::now().meet("wgmma.wait_group"); }
template <int kTiles> void wgmmaPin(float (&)[kTiles][4]) {}

/// An element of the matrix that a descriptor names: rows of 128 bytes in groups of eight, 16-byte columns
/// swizzled by bits of the address. `leading` bytes from 64 elements of a row to the next.
template <class Element> float elementOf(unsigned long long descriptor, unsigned row, unsigned column) {
  const unsigned begin = (descriptor & 0x3fff) << 4;
  const unsigned leading = (descriptor >> 16 & 0x3fff) << 4, eightRows = (descriptor >> 32 & 0x3fff) << 4;
  const unsigned place =
      begin + column / 64 * leading + row / 8 * eightRows + row % 8 * 128 + column % 64 * 2;
  std::uint16_t bits;
  std::memcpy(&bits, test::Block::now().shared(place ^ (place >> 7 & 7) << 4, 2), 2);
  return toFloat<Element>(bits);
}

/// c += a * b for the lane's values: `a(row half, depth)`, and b as the descriptor says, its columns along
/// rows of memory where it is read transposed.
template <class Element, bool kTransposed, int kTiles, class A>
void multiply(float (&c)[kTiles][4], A &&a, unsigned long long b, bool accumulate) {
  const unsigned lane = test::Block::lane();
  float rows[2][16];
  for (unsigned half = 0; half < 2; ++half)
    for (unsigned k = 0; k < 16; ++k)
      rows[half][k] = a(half, k);
  for (unsigned n = 0; n < kTiles; ++n)
    for (unsigned j = 0; j < 2; ++j) {
      const unsigned column = n * 8 + lane % 4 * 2 + j;
      float sum[2] = {accumulate ? c[n][j] : 0.f, accumulate ? c[n][2 + j] : 0.f};
      for (unsigned k = 0; k < 16; ++k) {
        const float y = kTransposed ? elementOf<Element>(b, k, column) : elementOf<Element>(b, column, k);
        sum[0] += rows[0][k] * y;
        sum[1] += rows[1][k] * y;
      }
      c[n][j] = sum[0];
      c[n][2 + j] = sum[1];
    }
  test::Block::now().meet("wgmma"); // nobody writes what others are reading
}

template <class Element, int kN> struct Wgmma {
  template <bool kTransposed>
  static void step(float (&c)[kN / 8][4], const unsigned (&a)[4], unsigned long long b, bool accumulate) {
    struct Operand {
      unsigned words[4];
      unsigned long long b;
    };
    const auto lanes = test::Block::now().meet("wgmma", Operand{{a[0], a[1], a[2], a[3]}, b});
    const unsigned lane = test::Block::lane();
    if (lanes[0].b != b)
      test::Block::now().fail("lanes name different matrices");
    multiply<Element, kTransposed>(
        c,
        [&](unsigned half, unsigned k) {
          const float2 pair = unpack2<Element>(lanes[lane / 4 * 4 + k % 8 / 2].words[half + k / 8 * 2]);
          return k % 2 == 0 ? pair.x : pair.y;
        },
        b, accumulate);
  }
};

template <class Element> struct WgmmaOfShared {
  static void step(float (&c)[8][4], unsigned long long a, unsigned long long b, bool accumulate) {
    const unsigned firstRow = place() + test::Block::lane() / 4;
    multiply<Element, false>(
        c, [&](unsigned half, unsigned k) { return elementOf<Element>(a, firstRow + 8 * half, k); }, b,
        accumulate);
  }

private:
  /// Of the warp's rows among its warpgroup's.
  static unsigned place() { return threadIdx.x / 32 % 4 * 16; }
};

template <class Element> struct WgmmaOfFew {
  template <bool kTransposed>
  static void step(float (&c)[2][4], unsigned long long a, unsigned long long b, bool accumulate) {
    const unsigned firstRow = threadIdx.x / 32 % 4 * 16 + test::Block::lane() / 4;
    multiply<Element, false>(
        c,
        [&](unsigned half, unsigned k) {
          const unsigned row = firstRow + 8 * half;
          return kTransposed ? elementOf<Element>(a, k, row) : elementOf<Element>(a, row, k);
        },
        b, accumulate);
  }
};

} // namespace deft::ptx
