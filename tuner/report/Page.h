#pragma once

#include "tuner/report/SessionData.h"

#include <functional>
#include <string>
#include <vector>

namespace deft::report {

/// The picture of a class's winning plan, or nothing: winningPlan() (WinningPlan.h), which makes the tree
/// anew that the journal names.
using PlanPicture = std::function<std::string(const SessionData &, const ClassData &)>;

/// One HTML page of the sessions: tables and drawings, nothing from the network, no script.
std::string renderPage(const std::vector<SessionData> &sessions, const PlanPicture &winningPlan = {});

} // namespace deft::report
