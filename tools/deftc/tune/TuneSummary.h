#pragma once

#include "tools/deftc/common/Context.h"
#include "tuner/session/Tune.h"

#include <iosfwd>
#include <string>
#include <vector>

namespace deft::cli {

/// A table of the classes, and what the session did.
void printTuneSummary(const session::TuneReport &report, std::ostream &out);

/// Renders journals of tuning sessions as one self-contained page; the exit code.
int writeTuneReport(Context &context, const std::vector<std::string> &journals, const std::string &path);

} // namespace deft::cli
