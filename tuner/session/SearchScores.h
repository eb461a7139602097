#pragma once

#include "tuner/session/Race.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace deft::session {

/// The measurements of a search's candidates, each relative to the untuned choice.
class SearchScores {
public:
  struct Score {
    double ratio = 0; ///< its time over that of the untuned choice
    double us = 0;
  };
  using Ranked = std::pair<double, std::string>; ///< ratio and id

  /// A racer at the end of its race. `ofTrees`: its trees that were given, not made as similar ones.
  void add(const Racer &racer, const Score &score, const std::vector<std::size_t> &ofTrees,
           Estimator estimator);

  const std::map<std::string, Score> &all() const { return all_; }
  int count() const { return static_cast<int>(all_.size()); }
  /// Candidates that stayed to the end of their race, the fastest first.
  const std::vector<Ranked> &ranking() const { return ranking_; }
  /// All, the fastest first.
  std::vector<Ranked> ranked() const;
  /// Among those in the ranking, the fastest on each given tree.
  const std::map<std::size_t, Ranked> &bestOfTree() const { return bestOfTree_; }
  /// At most that of the untuned choice.
  double leastRatio() const;

private:
  std::map<std::string, Score> all_;
  std::vector<Ranked> ranking_;
  std::map<std::size_t, Ranked> bestOfTree_;
};

} // namespace deft::session
