#pragma once

#include "tuner/regret/Regret.h"

/// Entries of older kernels, timed with today's. A search is not done again: what an entry found, and what
/// others near it found, is raced against the untuned choice.
namespace deft::regret {

/// A config has to be so many times as fast as the untuned choice over an entry's trees, and not slower than
/// so on any.
inline constexpr double kLeastRenewedGain = 1.02, kLeastRenewedGainOfTree = 0.99;

struct Renewal {
  config_cache::Entry entry; ///< of today's kernels
  double before = 1;         ///< what it gained when it was tuned
  bool isOwn = false; ///< it has the config that it had; else a near entry's, or keeps the untuned choice
};

/// What the stale entries of a timed report say now, in its order; those that were timed on no tree are left
/// out. `now` has the version, the kernels and the date of their new times.
std::vector<Renewal> renew(const RegretReport &timed, const config_cache::Provenance &now);

} // namespace deft::regret
