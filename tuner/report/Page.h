#pragma once

#include "tuner/report/SessionData.h"

#include <string>
#include <vector>

namespace deft::report {

/// One HTML page of the sessions: tables and drawings, nothing from the network, no script.
std::string renderPage(const std::vector<SessionData> &sessions);

} // namespace deft::report
