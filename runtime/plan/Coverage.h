#pragma once

#include "runtime/plan/Plan.h"
#include "runtime/plan/TreeView.h"

namespace deft::plan {

/// Whether the runs of a plan read at least as many (query, token) pairs as the segments of the view that it
/// was made of hold: a plan that leaves out a token of a query has fewer. Sums alone, in time for runs and
/// segments and without memory, so that every plan of a build with assertions is asked; verify() tells what
/// is wrong, and also where tokens are twice.
bool coversAll(const Plan &plan, const TreeView &view);

} // namespace deft::plan
