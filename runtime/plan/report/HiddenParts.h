#pragma once

#include "runtime/plan/report/PlanReport.h"

#include <functional>
#include <vector>

namespace deft::plan {

/// Tokens that a run has and the mask hides from some of its queries.
struct HiddenPart {
  int node = 0;
  int from = 0, to = 0;             ///< tokens of the node, [from, to)
  int queryBegin = 0, queryEnd = 0; ///< in the plan's order
};

/// How far to look.
struct HiddenLimits {
  int mostQueries = 1 << 30;   ///< the first ones of the plan's order
  int mostParts = 4000;        ///< that are found
  int mostQuestions = 200'000; ///< asked of PlanReport::shows; of the rest all counts as seen
  /// Where the mask itself is asked, one of so many tokens of a node; null: every one.
  std::function<int(int node)> step = {};
};

/// What items read for others of their queries: neighbours from whom the same is hidden at a time.
std::vector<HiddenPart> hiddenParts(const PlanReport &report, const HiddenLimits &limits = {});

} // namespace deft::plan
