#pragma once

#include "runtime/plan/report/PlanReport.h"

#include <vector>

namespace deft::plan {

/// Which block computes which units when, by the price model. A unit is item * kvHeads + head.
struct BlockTimes {
  struct Launch { ///< of a phase
    double beginUs = 0, endUs = 0;
  };
  std::vector<Launch> launches; ///< one for each phase of the plan, one after another
  std::vector<int> unitBegin;   ///< CSR over `units`: blocks + 1 entries
  std::vector<int> units;       ///< of each block, in the order in which it computes them
  std::vector<double> loadUs;   ///< of each block

  double busiestUs() const;
};

/// Of a GPU, each phase is a launch, and block b of n takes its units b, b + n, ...: the busiest block has
/// PlanCost::fullestUs. A processor's threads take the next unit when they are done, as plan::balance deals.
BlockTimes blockTimes(const PlanReport &report);

} // namespace deft::plan
