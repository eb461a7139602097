#pragma once

#include "runtime/plan/report/PlanPage.h"

#include <nlohmann/json_fwd.hpp>

namespace deft::plan {

/// Units of a plan that a page draws one by one; of more it has the blocks' loads only.
inline constexpr int kMostPageUnits = 200'000;

/// What the scripts of page/ read of a plan: columns of numbers, so that a tree of 1,000 nodes stays small.
/// Queries are named by their place in the plan's order.
nlohmann::json pageData(const PagePlan &plan);

} // namespace deft::plan
