#pragma once

#include "runtime/config_cache/Regret.h"

namespace deft::config_cache {

/// Adds to a report what its rows come to.
void summarize(RegretReport &report);

} // namespace deft::config_cache
