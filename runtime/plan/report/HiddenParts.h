#pragma once

#include "runtime/plan/report/PlanReport.h"

#include <functional>
#include <vector>

namespace deft::plan {

/// Tokens of a run that the mask hides from some of its queries.
struct HiddenPart {
  int node = 0;
  int from = 0, to = 0;             ///< tokens of the node, [from, to)
  int queryBegin = 0, queryEnd = 0; ///< in the plan's order
};

/// Limits of the search.
struct HiddenLimits {
  int mostQueries = 1 << 30;   ///< the first queries in plan order
  int mostParts = 4000;        ///< parts that are returned
  int mostQuestions = 200'000; ///< calls of PlanReport::shows; tokens after that count as visible
  /// If given, only one of step(node) tokens of a node is checked against the mask; null: every token.
  std::function<int(int node)> step = {};
};

/// Tokens that items read only for others of their queries, grouped by neighbouring queries.
std::vector<HiddenPart> hiddenParts(const PlanReport &report, const HiddenLimits &limits = {});

} // namespace deft::plan
