#pragma once

#include "runtime/plan/Plan.h"

#include <span>

/// Where runs begin because a mask hides what is before. As leaves grow, windows move: such runs lose their
/// beginnings, so that what nobody sees any more is not read, and its pages may be freed.
namespace deft::plan {

/// Finds the runs that may lose tokens while leaves gain `mostGrowth`, at most.
void findWindowStarts(int mostGrowth, Plan &plan);

/// How far each of the plan's window starts moves, now that queries see what leaves have gained. False: some
/// run would be empty, or a chunk of an invariant plan shows one of its readers nothing any more, and it is
/// time for a new plan.
bool findWindowMoves(const Plan &plan, std::span<int> moved);

/// Moves each window start so far. Returns how many tokens an item has lost at most.
int moveWindowStarts(Plan &plan, std::span<const int> allMoved);

} // namespace deft::plan
