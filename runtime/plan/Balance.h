#pragma once

#include "runtime/plan/Plan.h"

#include <span>
#include <vector>

namespace deft::plan {

/// Units of work (an item for one KV head: item * kvHeads + head) laid on persistent blocks.
struct Balance {
  std::vector<int> unitBegin; ///< CSR over `units`: blocks + 1 entries
  std::vector<int> units;     ///< of each block, heaviest first
  std::vector<double> load;   ///< of each block, in the unit of the costs
  double mostLoad = 0;
  double meanLoad = 0;

  /// 1 is perfect; the machine is idle for the rest.
  double maxOverMean() const { return meanLoad > 0 ? mostLoad / meanLoad : 1; }
};

/// What an item costs when nothing better is known: its tokens, and those that its start is worth.
std::vector<double> itemCosts(const Plan &plan);

/// Heaviest first, each unit to the block that has least so far (the first of several): what blocks do that
/// take the next unit of the sorted list whenever they are done. Ties in the plan's order. `costs`: of each
/// item, for one KV head.
Balance balance(const Plan &plan, std::span<const double> costs, int kvHeads, int blocks);

} // namespace deft::plan
