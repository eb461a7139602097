#pragma once

#include "tuner/report/SessionData.h"

#include <string>

namespace deft::report {

/// How the winning config divides the class's first tree, as a picture (plan::drawPlan). Empty if a journal
/// lacks the data: the class is not done, the tree came from a file or a record, or a mask hides tokens of
/// the tree. Also empty if the picture would be most of the page.
std::string winningPlan(const SessionData &session, const ClassData &one);

} // namespace deft::report
