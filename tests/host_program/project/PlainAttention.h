#pragma once

#include <cstdint>
#include <vector>

/// The host's own idea of the result: no tree, no plan, one sequence after the other in double.

inline float fromBf16(std::uint16_t bits) {
  const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
  float value;
  static_assert(sizeof value == sizeof wide);
  __builtin_memcpy(&value, &wide, sizeof value);
  return value;
}

inline std::uint16_t toBf16(float value) {
  std::uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

struct Shape {
  int queryHeads = 0, kvHeads = 0, headDim = 0;
  double scale = 1;
};

/// K or V of one token, [kv_head][head_dim].
using TokenVectors = std::vector<std::uint16_t>;

struct PlainRow {
  std::vector<double> out;
  double lse = 0;
};

/// One query head over a whole sequence, `q` its head_dim values.
PlainRow plainAttention(const Shape &shape, int head, const std::uint16_t *q,
                        const std::vector<const TokenVectors *> &keys,
                        const std::vector<const TokenVectors *> &values);

/// How far a row is off, relative to it; infinite where its lse is wrong. NaN where it has one.
double errorOf(const PlainRow &plain, const std::uint16_t *out, float lse);
