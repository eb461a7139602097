#pragma once

#include "deft/ptx/wgmma.cuh"
#include "runtime/exec/Fp8.h"

namespace deft::ptx {

inline unsigned packE4m3(float a, float b, float c, float d) {
  const auto byte = [](float x) { return static_cast<unsigned>(exec::fp8FromFloat(x, exec::kE4m3)); };
  return byte(a) | byte(b) << 8 | byte(c) << 16 | byte(d) << 24;
}

inline unsigned bytesOfPairs(unsigned low, unsigned high, bool areSecond) {
  const auto bytes = [&](unsigned pairs) {
    pairs >>= areSecond ? 8 : 0;
    return (pairs & 0xff) | (pairs >> 8 & 0xff00);
  };
  return bytes(low) | bytes(high) << 16;
}

inline uint2 loadShared8(unsigned shared) {
  uint2 r;
  std::memcpy(&r, test::Block::now().shared(shared, 8), 8);
  return r;
}

/// Of the matrix that a descriptor names, as elementOf has it of 16 bits.
inline float byteOf(unsigned long long descriptor, unsigned row, unsigned column) {
  const unsigned begin = (descriptor & 0x3fff) << 4, eightRows = (descriptor >> 32 & 0x3fff) << 4;
  const unsigned place = begin + row / 8 * eightRows + row % 8 * 128 + column;
  return exec::floatFromE4m3(
      static_cast<std::uint8_t>(*test::Block::now().shared(place ^ (place >> 7 & 7) << 4, 1)));
}

template <int kN> struct WgmmaBytes {
  static void step(float (&c)[kN / 8][4], const unsigned (&a)[4], unsigned long long b, bool accumulate) {
    struct Operand {
      unsigned words[4];
      unsigned long long b;
    };
    const auto lanes = test::Block::now().meet("wgmma", Operand{{a[0], a[1], a[2], a[3]}, b});
    const unsigned lane = test::Block::lane();
    if (lanes[0].b != b)
      test::Block::now().fail("lanes name different matrices");
    for (unsigned n = 0; n < kN / 8; ++n)
      for (unsigned j = 0; j < 4; ++j) {
        const unsigned column = n * 8 + lane % 4 * 2 + j % 2;
        float sum = accumulate ? c[n][j] : 0.f;
        for (unsigned k = 0; k < 32; ++k) {
          const unsigned word = lanes[lane / 4 * 4 + k % 16 / 4].words[j / 2 + k / 16 * 2];
          sum += exec::floatFromE4m3(static_cast<std::uint8_t>(word >> k % 4 * 8)) * byteOf(b, column, k);
        }
        c[n][j] = sum;
      }
    test::Block::now().meet("wgmma"); // nobody writes what others are reading
  }
};

} // namespace deft::ptx
