#pragma once

#include "tuner/session/Candidates.h"
#include "tuner/session/SearchScores.h"

#include <functional>

namespace deft::session {

/// How many finalists may be confirmed: the next one where one loses on trees that were held out.
inline constexpr std::size_t kMostAttempts = 3;
/// A config is clearly faster when it is by this much, beyond twice the standard error.
inline constexpr double kClearGain = 0.01;

/// The candidates of a search that should race once more, those that may win first; none: nothing promises
/// more than the untuned choice.
std::vector<std::string> finalistsOf(const SearchScores &scores, const Candidates &candidates,
                                     const std::function<bool(const std::string &id)> &isRejected);

/// Finalists after their race, in the order in which they are to be confirmed: the fastest first, but of
/// those that are as good a neighbour's, and one with less burden. Those that failed are left out.
std::vector<std::string> orderOfFinalists(std::vector<Racer> racers, const Candidates &candidates,
                                          Estimator estimator);

/// What was the fastest on one of the given trees, of all that stayed to the end of their race, where it was
/// so clearly, the fastest first: where nothing is faster on all trees, this may be for some.
std::vector<std::string> bestOfSome(const SearchScores &scores);

} // namespace deft::session
