#pragma once

#include "tuner/regret/Regret.h"

namespace deft::regret {

/// Adds summaries of its rows to a report.
void summarize(RegretReport &report);

} // namespace deft::regret
