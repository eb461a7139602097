#include "runtime/plan/Coverage.h"

#include "runtime/plan/Slope.h"

namespace deft::plan {

namespace {

/// The sum over all runs or segments.
template <class Stretches> std::int64_t allPairsOf(const Stretches &stretches) {
  std::int64_t pairs = 0;
  for (const auto &stretch : stretches)
    pairs += pairsOf(stretch);
  return pairs;
}

} // namespace

bool coversAll(const Plan &plan, const TreeView &view) {
  return allPairsOf(plan.runs) >= allPairsOf(view.segments);
}

} // namespace deft::plan
