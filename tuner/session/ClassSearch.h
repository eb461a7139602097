#pragma once

#include "tuner/session/CandidateTimer.h"
#include "tuner/session/ClassProgress.h"
#include "tuner/session/SearchScores.h"

namespace deft::session {

/// The outcome of a search.
struct SearchResult {
  Racer untuned{kUntuned, {}, false}; ///< its rounds next to all candidates
  SearchScores scores;
  bool isUsable = true; ///< false: even the untuned choice cannot be measured
  bool isCut = false;   ///< it ran out of time
  bool isCancelled = false;

  /// 0: not measured.
  double untunedUs(Estimator estimator) const { return untuned.hasRun() ? untuned.ownUs(estimator) : 0; }
};

/// Races batches of candidates against the untuned choice, on the searched trees. Ends when no promising
/// candidate is left, the limit is reached, or time is over.
SearchResult searchClass(const SessionContext &context, const ClassTask &task, Candidates &candidates,
                         CandidateTimer &timer, const ClassClock &clock, ClassProgress &progress);

/// The most candidates that a search measures.
int mostCandidatesOf(const TuneOptions &options);

} // namespace deft::session
