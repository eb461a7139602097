#pragma once

#include "tuner/session/Candidates.h"
#include "tuner/session/SearchScores.h"

#include <functional>

namespace deft::session {

/// The most finalists to confirm: the next one follows if one loses on held-out trees.
inline constexpr std::size_t kMostAttempts = 3;
/// A config is clearly faster if its gain exceeds this plus twice the standard error.
inline constexpr double kClearGain = 0.01;

/// The candidates of a search that should race once more, likely winners first; none: the untuned choice is
/// best.
std::vector<std::string> finalistsOf(const SearchScores &scores, const Candidates &candidates,
                                     const std::function<bool(const std::string &id)> &isRejected);

/// Finalists after their race, in the order of confirmation: the fastest first. Among equally good ones, a
/// neighbour's or one with less burden comes first. Failed ones are left out.
std::vector<std::string> orderOfFinalists(std::vector<Racer> racers, const Candidates &candidates,
                                          Estimator estimator);

/// The candidates that were clearly the fastest on one of the given trees, of all that stayed to the end of
/// their race; the fastest first. If none is faster on all trees, these may serve some.
std::vector<std::string> bestOfSome(const SearchScores &scores);

} // namespace deft::session
