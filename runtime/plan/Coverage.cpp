#include "runtime/plan/Coverage.h"

namespace deft::plan {

namespace {

/// Tokens times readers, over runs or segments.
template <class Stretches> std::int64_t pairsOf(const Stretches &stretches) {
  std::int64_t pairs = 0;
  for (const auto &stretch : stretches)
    pairs += std::int64_t{stretch.tokens} * (stretch.queryEnd - stretch.queryBegin);
  return pairs;
}

} // namespace

bool coversAll(const Plan &plan, const TreeView &view) {
  return pairsOf(plan.runs) >= pairsOf(view.segments);
}

} // namespace deft::plan
