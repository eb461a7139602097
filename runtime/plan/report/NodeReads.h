#pragma once

#include "runtime/plan/report/PlanReport.h"

#include <cstdint>
#include <vector>

namespace deft::plan {

/// How many tokens of a node the items of a plan read.
struct NodeReads {
  std::int64_t first = 0; ///< different tokens
  std::int64_t again = 0; ///< tokens that another item has read before
};

/// For each node of the report's tree. The sum over all nodes equals the tokens of all items.
std::vector<NodeReads> nodeReads(const PlanReport &report);

} // namespace deft::plan
