#pragma once

#include "runtime/plan/report/PlanReport.h"

#include <iosfwd>
#include <string>

namespace deft::cli {

/// `why` says how the config was chosen.
void printPlan(const plan::PlanReport &report, const std::string &why, std::ostream &out);

} // namespace deft::cli
