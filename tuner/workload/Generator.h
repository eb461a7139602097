#pragma once

#include "tuner/workload/Editor.h"

#include <cstdint>
#include <random>

namespace deft::workload {

/// Gives equal numbers for equal seeds, whatever the standard library.
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

/// Makes a tree and what happens to it, one decode step after the other. A step's tokens are those that its
/// queries see: the token that a query belongs to is already in the tree.
class Generator {
public:
  virtual ~Generator() = default;

  /// Builds the tree of step 1, in a tree that may hold nodes of others.
  virtual void start(Editor &editor) = 0;

  /// Goes from step - 1 to `step`. Names this step's queries, as start does.
  virtual void advance(int step, Editor &editor) = 0;

  /// The last step, known once it has started.
  virtual int steps() const = 0;
};

} // namespace deft::workload
