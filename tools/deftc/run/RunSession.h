#pragma once

#include "tools/deftc/common/Context.h"
#include "tools/deftc/run/RunOptions.h"
#include "tools/deftc/run/RunReport.h"

namespace deft::cli {

/// Runs all of it: opens, plans, runs, checks and dumps.
support::Result<RunReport> runSession(Context &context, const RunOptions &options);

} // namespace deft::cli
