#pragma once

#include "compiler/config/Config.h"
#include "compiler/support/Result.h"

#include <cstddef>
#include <vector>

namespace deft::sparse {

/// Lists that a sparse layer reads: for `queries` queries, of `budget` tokens each.
struct Lists {
  int budget = 0, queries = 0;

  bool operator==(const Lists &) const = default;
};

/// Times sparse layers.
class SparseMachine {
public:
  virtual ~SparseMachine() = default;

  /// Shapes of the available kernels, at least one; the first is the untuned one.
  virtual const std::vector<config::PhaseConfig> &tiles() const = 0;
  /// Later calls use these lists.
  virtual support::Result<void> open(const Lists &lists) = 0;
  /// The possible item sizes for a tile, in tokens: the first is the untuned
  /// choice.
  virtual support::Result<std::vector<int>> cuts(std::size_t tile) = 0;
  /// Microseconds of a layer: the median of several runs, each on cold caches.
  virtual support::Result<double> time(std::size_t tile, int itemTokens) = 0;
};

} // namespace deft::sparse
