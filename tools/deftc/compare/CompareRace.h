#pragma once

#include "runtime/plan/Plan.h"
#include "tools/deftc/compare/CompareReport.h"
#include "tools/deftc/run/RunBackend.h"

#include <span>
#include <vector>

namespace deft::cli {

/// One way to run one program, which stays as it is: its inputs are loaded.
struct CompareRacer {
  CompareRow row;
  RunBackend *backend = nullptr;
  plan::Plan plan;
  std::vector<double> us; ///< of each round

  bool isRunnable() const { return row.fault.empty(); }
};

/// Times those that can be run, in turn, in another order every other round, and writes into their rows what
/// the rounds came to. `rounds` 0: as many as take about 20 s, 3 to 15. Gives how many there were. `what` is
/// said while it goes on.
support::Result<int> race(Context &context, std::span<CompareRacer> racers, int rounds,
                          const std::string &what);

} // namespace deft::cli
