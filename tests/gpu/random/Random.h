#pragma once

#include <cstdint>
#include <initializer_list>
#include <random>

namespace deft::gpu_test {

/// Draws that are the same on every standard library.
class Random {
public:
  /// A stream of its own for each (seed, a, b): a case can be run again without those before it.
  Random(std::uint64_t seed, std::uint64_t a, std::uint64_t b = 0)
      : engine_(seed * 0x9e3779b97f4a7c15u + a * 0xbf58476d1ce4e5b9u + b * 0x94d049bb133111ebu + 1) {
    engine_.discard(8);
  }

  int below(int n) { return static_cast<int>(engine_() % static_cast<std::uint64_t>(n)); }
  int between(int low, int high) { return low + below(high - low + 1); } ///< both included
  bool oneIn(int n) { return below(n) == 0; }
  template <typename T> T of(std::initializer_list<T> choices) {
    return choices.begin()[below(static_cast<int>(choices.size()))];
  }
  std::uint64_t seed() { return engine_(); }

private:
  std::mt19937_64 engine_;
};

} // namespace deft::gpu_test
