#pragma once

#include "runtime/plan/Plan.h"
#include "runtime/plan/TreeView.h"

namespace deft::plan {

/// Whether the runs of a plan cover at least as many (query, token) pairs as the segments of its view. A plan
/// that misses a token of a query covers fewer. This only adds up counts, in linear time and without memory,
/// so builds with assertions check every plan. verify() is slower: it finds the fault, and also finds tokens
/// that are read twice.
bool coversAll(const Plan &plan, const TreeView &view);

} // namespace deft::plan
