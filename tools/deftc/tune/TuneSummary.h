#pragma once

#include "tools/deftc/common/Context.h"
#include "tuner/report/SessionData.h"
#include "tuner/session/Tune.h"

#include <iosfwd>
#include <string>
#include <vector>

namespace deft::cli {

/// In a summary: and how to go on.
const char *endText(measure::Ended ended);

/// A table of the classes, and what the session did.
void printTuneSummary(const session::TuneReport &report, std::ostream &out);

/// Writes sessions as one self-contained page; the exit code.
int writeTunePage(Context &context, const std::vector<report::SessionData> &sessions,
                  const std::string &path);

/// Likewise of journals.
int writeTuneReport(Context &context, const std::vector<std::string> &journals, const std::string &path);

} // namespace deft::cli
