#pragma once

#include "tuner/workload/Editor.h"

#include <cstdint>
#include <random>

namespace deft::workload {

/// Gives equal numbers for equal seeds with every standard library.
class Random {
public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  int between(int low, int high) { ///< both included
    return low + static_cast<int>(engine_() % (static_cast<std::uint64_t>(high - low) + 1));
  }
  bool chance(double probability) { return static_cast<double>(engine_() >> 11) * 0x1p-53 < probability; }
  std::uint64_t seed() { return engine_(); }

private:
  std::mt19937_64 engine_;
};

/// Makes a tree and its changes, one decode step after the other. The tree of a step has the tokens that its
/// queries see, including each query's own token.
class Generator {
public:
  virtual ~Generator() = default;

  /// Builds the tree of step 1 within a tree that may already have other nodes.
  virtual void start(Editor &editor) = 0;

  /// Goes from step - 1 to `step`. Adds this step's queries, like start().
  virtual void advance(int step, Editor &editor) = 0;

  /// The last step; known after start().
  virtual int steps() const = 0;
};

} // namespace deft::workload
