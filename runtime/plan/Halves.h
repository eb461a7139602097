#pragma once

#include "compiler/config/Config.h"
#include "runtime/plan/Plan.h"

/// The order of runs for kernels that halve an item's rows. In templates/deft/sm90/consumer.cuh an item of
/// more than 64 rows has two warpgroups, for 64 rows each. Both walk its tiles of 64 tokens in the same
/// order, pass over those that none of their queries sees, and cannot be farther apart than the ring of tiles
/// is long. In path order a stretch of leaves belongs to one half, the next to the other: one of them waits
/// all the time.
///
/// So what both halves see comes first, in path order; then what one half alone sees and what the other alone
/// sees by turns, a tile each. Runs are split where tiles end. What the common runs leave of a tile, which
/// both compute anyway, is filled by the half that has more; where one half has no more, the rest of the
/// other follows. All linear.
namespace deft::plan {

/// Some phase of the config computes items by halves.
bool hasHalves(const config::Config &config);

/// For a plan as it is cut: items, runs and tails in the same order. The runs of the items concerned come
/// behind those of the others, and Plan::halved tells which they are. Items that have nothing for one of the
/// halves alone stay as they are, as does a plan that would have more than TileList::kMostRuns.
void orderHalves(int ratio, Plan &plan);

/// The same for a plan that has it behind it and whose runs have grown since: turns are a tile each again.
void orderHalvesAgain(Plan &plan);

/// How many runs there may be more after orderHalvesAgain, however much leaves grow before a new plan is
/// needed, or in a plan of a tree that is the same but for some tokens.
std::size_t mostSplits(const Plan &plan);

} // namespace deft::plan
