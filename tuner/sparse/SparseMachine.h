#pragma once

#include "compiler/config/Config.h"
#include "compiler/support/Result.h"

#include <cstddef>
#include <vector>

namespace deft::sparse {

/// Lists that a sparse layer reads: so many queries', of so many tokens each.
struct Lists {
  int budget = 0, queries = 0;

  bool operator==(const Lists &) const = default;
};

/// What times sparse layers.
class SparseMachine {
public:
  virtual ~SparseMachine() = default;

  /// Shapes of the kernels that there are, at least one; the first is the one without tuning.
  virtual const std::vector<config::PhaseConfig> &tiles() const = 0;
  /// What is asked and timed from now on reads these.
  virtual support::Result<void> open(const Lists &lists) = 0;
  /// Tokens of the items that they may be cut into for a tile: the first is what they are cut into without
  /// tuning.
  virtual support::Result<std::vector<int>> cuts(std::size_t tile) = 0;
  /// Microseconds of a layer: the median of some runs, each on cold caches.
  virtual support::Result<double> time(std::size_t tile, int itemTokens) = 0;
};

} // namespace deft::sparse
