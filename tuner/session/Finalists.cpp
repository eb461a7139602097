#include "tuner/session/Finalists.h"

#include <algorithm>
#include <set>

namespace deft::session {
namespace {

constexpr std::size_t kFinalists = 4;
/// Configs closer than this are equally good.
constexpr double kTie = 0.015;
/// The tie for configs with fewer phases, and without a new plan for each step (Candidate::burden): on a
/// slightly different tree, a single item of another phase would run alone after all others.
constexpr double kSimplerTie = 0.01;

bool contains(const std::vector<std::string> &ids, const std::string &id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

} // namespace

std::vector<std::string> finalistsOf(const SearchScores &scores, const Candidates &candidates,
                                     const std::function<bool(const std::string &id)> &isRejected) {
  std::vector<std::string> finalists;
  const auto add = [&](const std::string &id) {
    if (!isRejected(id) && !contains(finalists, id))
      finalists.push_back(id);
  };
  const auto &ranking = scores.ranking();
  for (const auto &[ratio, id] : ranking)
    if (finalists.size() < kFinalists && ratio < 1)
      add(id);
  for (const auto &[ratio, id] : ranking)
    if (candidates.at(id).isOfNeighbour() && ratio < 1)
      add(id);
  const auto simpler = std::find_if(ranking.begin(), ranking.end(), [&](const auto &ranked) {
    return candidates.at(ranked.second).burden() < candidates.at(ranking.front().second).burden();
  });
  if (simpler != ranking.end() && simpler->first < 1)
    add(simpler->second);
  // A candidate that fell behind in its race may still be the best one without a loss on other trees.
  for (const auto &[ratio, id] : scores.ranked())
    if (!finalists.empty() && finalists.size() < kMostAttempts && ratio < 1 - kClearGain)
      add(id);
  return finalists;
}

std::vector<std::string> orderOfFinalists(std::vector<Racer> racers, const Candidates &candidates,
                                          Estimator estimator) {
  std::erase_if(racers, [](const Racer &racer) { return racer.isOut || !racer.hasRun(); });
  if (racers.empty())
    return {};
  std::stable_sort(racers.begin(), racers.end(),
                   [&](const Racer &a, const Racer &b) { return a.score(estimator) < b.score(estimator); });
  const auto prefer = [&](double tie, const auto &isWanted) {
    putFirst(
        racers, [&](const Racer &racer) { return isWanted(candidates.at(racer.id)); }, estimator, tie,
        -kClearGain);
  };
  // A neighbour's config is as good, and means one config for both.
  prefer(kTie, [](const Candidate &candidate) { return candidate.isOfNeighbour(); });
  const std::size_t burden = candidates.at(racers.front().id).burden();
  prefer(kSimplerTie, [&](const Candidate &candidate) { return candidate.burden() < burden; });
  std::vector<std::string> ids;
  for (const Racer &racer : racers)
    if (ids.size() < kMostAttempts)
      ids.push_back(racer.id);
  return ids;
}

std::vector<std::string> bestOfSome(const SearchScores &scores) {
  std::set<SearchScores::Ranked> best;
  for (const auto &[tree, ranked] : scores.bestOfTree())
    if (ranked.first < 1 - 2 * kClearGain)
      best.insert(ranked);
  std::vector<std::string> ids;
  for (const auto &[ratio, id] : best)
    if (ids.size() < kMostAttempts && !contains(ids, id))
      ids.push_back(id);
  return ids;
}

} // namespace deft::session
