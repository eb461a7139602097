#pragma once

#include "tuner/session/CandidateTimer.h"
#include "tuner/session/ClassProgress.h"
#include "tuner/session/SearchScores.h"

namespace deft::session {

/// What a search came to.
struct SearchResult {
  Racer untuned{kUntuned, {}, false}; ///< its rounds beside all candidates
  SearchScores scores;
  bool isUsable = true; ///< false: not even the untuned choice can be measured
  bool isCut = false;   ///< it ended because its time was over
  bool isCancelled = false;

  /// 0: it was not measured.
  double untunedUs(Estimator estimator) const { return untuned.hasRun() ? untuned.ownUs(estimator) : 0; }
};

/// Races batch after batch of candidates against the untuned choice, on the trees that are searched on, until
/// none is left that promises anything, so many are measured, or the time is over.
SearchResult searchClass(const SessionContext &context, const ClassTask &task, Candidates &candidates,
                         CandidateTimer &timer, const ClassClock &clock, ClassProgress &progress);

/// How many candidates a search measures at most.
int mostCandidatesOf(const TuneOptions &options);

} // namespace deft::session
