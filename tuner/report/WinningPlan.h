#pragma once

#include "tuner/report/SessionData.h"

#include <string>

namespace deft::report {

/// How the class's first tree is cut by the config that won, as a picture (plan::drawPlan). Empty where that
/// cannot be told from a journal: the class is not done, the tree came from a file or a record, the attention
/// hides more than its tree does; and where the picture would be most of the page.
std::string winningPlan(const SessionData &session, const ClassData &one);

} // namespace deft::report
