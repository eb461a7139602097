#pragma once

#include "runtime/plan/report/PlanReport.h"

#include <vector>

namespace deft::plan {

/// When each block computes its units, by the price model. A unit is item * kvHeads + head.
struct BlockTimes {
  struct Launch { ///< of a phase
    double beginUs = 0, endUs = 0;
  };
  std::vector<Launch> launches; ///< one for each phase of the plan, one after another
  std::vector<int> unitBegin;   ///< CSR over `units`: blocks + 1 entries
  std::vector<int> units;       ///< the units of each block, in the order in which it computes them
  std::vector<double> loadUs;   ///< the work of each block

  double busiestUs() const;
};

/// On a GPU, each phase is a launch, and block b of n takes its units b, b + n, ...: the busiest block has
/// PlanCost::fullestUs. Threads of a processor take the next unit when they are free, as in plan::balance.
BlockTimes blockTimes(const PlanReport &report);

} // namespace deft::plan
