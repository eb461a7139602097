#pragma once

#include "tuner/report/SessionData.h"

#include <string>

namespace deft::report {

/// What came of the session, in a few sentences: how many of its classes are done, what was gained, what is
/// missing, how much was tried.
std::string resultText(const SessionData &session);

} // namespace deft::report
