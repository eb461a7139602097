#pragma once

#include "runtime/plan/Plan.h"

namespace deft::plan {

/// Items 1, 3, ... of the list read their runs in the opposite order (config::Order::Alternate).
void turnEveryOtherItem(Plan &plan);

} // namespace deft::plan
