#pragma once

#include "runtime/plan/Plan.h"

#include <span>
#include <vector>

namespace deft::plan {

/// Units of work (an item for one KV head: item * kvHeads + head), assigned to persistent blocks.
struct Balance {
  std::vector<int> unitBegin; ///< CSR over `units`: blocks + 1 entries
  std::vector<int> units;     ///< the units of each block, heaviest first
  std::vector<double> load;   ///< the work of each block, in the unit of the costs
  double mostLoad = 0;
  double meanLoad = 0;

  /// 1 is perfect balance; a larger value means that blocks are idle part of the time.
  double maxOverMean() const { return meanLoad > 0 ? mostLoad / meanLoad : 1; }
};

/// Estimates each item's cost without a cost model: its tokens plus a fixed number for its start.
std::vector<double> itemCosts(const Plan &plan);

/// Assigns each unit, heaviest first, to the block with the least work so far (the first of equals). That
/// models blocks that take the next unit of the sorted list when they are free. Ties keep the plan's order.
/// `costs` holds the cost of each item for one KV head.
Balance balance(const Plan &plan, std::span<const double> costs, int kvHeads, int blocks);

} // namespace deft::plan
