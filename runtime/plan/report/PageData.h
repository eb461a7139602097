#pragma once

#include "runtime/plan/report/PlanPage.h"

#include <nlohmann/json_fwd.hpp>

namespace deft::plan {

/// The most units that a page draws separately; for larger plans it only has the loads of blocks.
inline constexpr int kMostPageUnits = 200'000;

/// The data of a plan for the scripts of page/: columns of numbers, so that a tree of 1,000 nodes stays
/// small. Queries are numbered in plan order.
nlohmann::json pageData(const PagePlan &plan);

} // namespace deft::plan
