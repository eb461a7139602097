#pragma once

#include "tuner/regret/Regret.h"

/// Times entries of older kernels with today's. It does not search again: it races the configs of an entry
/// and of its neighbours against the untuned choice.
namespace deft::regret {

/// A config must be this many times as fast as the untuned choice over an entry's trees, and at least this
/// fast on each tree.
inline constexpr double kLeastRenewedGain = 1.02, kLeastRenewedGainOfTree = 0.99;

struct Renewal {
  config_cache::Entry entry; ///< of today's kernels
  double before = 1;         ///< its gain when it was tuned
  bool isOwn = false;        ///< it keeps its config; otherwise it has a near entry's or the untuned one
};

/// The results for the stale entries of a timed report, in its order. Entries that were timed on no tree are
/// left out. `now` has the version, the kernels and the date of the new times.
std::vector<Renewal> renew(const RegretReport &timed, const config_cache::Provenance &now);

} // namespace deft::regret
