#pragma once

#include "tuner/report/SessionData.h"

#include <string>

namespace deft::report {

/// The results of the session in a few sentences: the classes that are done, the gains, the missing parts,
/// the number of candidates.
std::string resultText(const SessionData &session);

} // namespace deft::report
