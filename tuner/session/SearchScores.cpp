#include "tuner/session/SearchScores.h"

#include <algorithm>
#include <cmath>

namespace deft::session {

void SearchScores::add(const Racer &racer, const Score &score, const std::vector<std::size_t> &ofTrees,
                       Estimator estimator) {
  all_[racer.id] = score;
  if (racer.isOut)
    return;
  const Ranked own(score.ratio, racer.id);
  ranking_.insert(std::lower_bound(ranking_.begin(), ranking_.end(), own), own);
  for (const std::size_t tree : ofTrees) {
    const Ranked onTree(std::exp(racer.on({tree}).score(estimator)), racer.id);
    Ranked &best = bestOfTree_.try_emplace(tree, onTree).first->second;
    best = std::min(best, onTree);
  }
}

std::vector<SearchScores::Ranked> SearchScores::ranked() const {
  std::vector<Ranked> ranked;
  for (const auto &[id, score] : all_)
    ranked.emplace_back(score.ratio, id);
  std::sort(ranked.begin(), ranked.end());
  return ranked;
}

double SearchScores::leastRatio() const {
  return ranking_.empty() ? 1.0 : std::min(1.0, ranking_.front().first);
}

} // namespace deft::session
