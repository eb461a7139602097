#pragma once

#include "tuner/regret/Regret.h"

namespace deft::regret {

/// Adds to a report what its rows come to.
void summarize(RegretReport &report);

} // namespace deft::regret
