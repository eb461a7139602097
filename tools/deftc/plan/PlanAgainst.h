#pragma once

#include "compiler/support/Result.h"
#include "tools/deftc/plan/PlanOptions.h"

#include <string>
#include <vector>

namespace deft::cli {

/// What a second plan may have otherwise than the first.
std::vector<std::string> againstNames();

/// The options of the second plan: those of the first, except those that `first.against` names.
support::Result<PlanOptions> againstOptions(const PlanOptions &first);

} // namespace deft::cli
