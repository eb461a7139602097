#pragma once

#include "runtime/plan/Plan.h"

#include <span>

/// Places where runs begin because a mask hides the tokens before. As leaves grow, windows move and these
/// runs lose their first tokens: plans no longer read them, so their pages may be freed.
namespace deft::plan {

/// Finds the runs that may lose tokens while leaves gain up to `mostGrowth` tokens.
void findWindowStarts(int mostGrowth, Plan &plan);

/// Computes how far each window start of the plan moves after its leaves have grown. False if a new plan
/// is due: some run would be empty, or a chunk of an invariant plan shows one of its readers nothing any
/// more.
bool findWindowMoves(const Plan &plan, std::span<int> moved);

/// Moves each window start so far. Returns the most tokens that any item may have lost.
int moveWindowStarts(Plan &plan, std::span<const int> allMoved);

} // namespace deft::plan
