#pragma once

#include "tuner/report/SessionData.h"

#include <functional>
#include <string>
#include <vector>

namespace deft::report {

/// Draws a class's winning plan, or nothing: winningPlan() (WinningPlan.h), which rebuilds the tree named in
/// the journal.
using PlanPicture = std::function<std::string(const SessionData &, const ClassData &)>;

/// One HTML page for the sessions: tables and drawings, without network access or scripts.
std::string renderPage(const std::vector<SessionData> &sessions, const PlanPicture &winningPlan = {});

} // namespace deft::report
