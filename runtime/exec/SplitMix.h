#pragma once

#include <cstdint>

namespace deft::exec {

/// A counter-based generator (splitmix64's finaliser): any value can be had without those before it.
inline std::uint64_t scramble(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// Nearly normal, variance 1: the sum of four uniform 16-bit numbers, centred and scaled.
inline float normal(std::uint64_t random) {
  const auto sum = static_cast<float>((random & 0xffff) + (random >> 16 & 0xffff) + (random >> 32 & 0xffff) +
                                      (random >> 48));
  return (sum - 2 * 65535.f) * (1.7320508f / 65536.f);
}

} // namespace deft::exec
