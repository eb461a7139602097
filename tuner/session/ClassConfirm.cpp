#include "tuner/session/ClassTuner.h"

#include <algorithm>
#include <cmath>

/// What becomes of the best of a search.
namespace deft::session {
namespace {

constexpr int kFinalRounds = 7, kConfirmRounds = 15;
constexpr int kFinalFrom = 1'000'000, kConfirmFrom = 2'000'000, kHeldOutFrom = 3'000'000;
constexpr std::size_t kFinalists = 4;
/// When the time is over, a final and a confirmation end with so many rounds.
constexpr std::size_t kFewestRounds = 5;
/// A config is clearly faster when it is by this much, beyond twice the standard error.
constexpr double kClearGain = 0.01;
/// And clearly slower on trees that were held out.
constexpr double kClearLoss = 0.02;
/// Configs closer than this are as good as each other.
constexpr double kTie = 0.015;

const auto kNoDrop = [](const Racer &, int, double) {};

} // namespace

bool ClassTuner::isEnough(const Racer &reference) const {
  return isCancelled() ||
         (deadline_ && Clock::now() > *deadline_ && reference.rounds.size() >= kFewestRounds);
}

/// The best of the best in a race of its own; the untuned config where nothing promises more.
std::string ClassTuner::final() {
  std::vector<Racer> racers;
  const auto add = [&](const std::string &id) {
    if (!state_.journal.rejected(name_, id) &&
        std::none_of(racers.begin(), racers.end(), [&](const Racer &racer) { return racer.id == id; }))
      racers.push_back({id, {}, false});
  };
  for (const auto &[ratio, id] : ranking_)
    if (racers.size() < kFinalists && ratio < 1)
      add(id);
  for (const auto &[ratio, id] : ranking_)
    if (known_.at(id).origin == kNeighbour && ratio < 1)
      add(id);
  if (racers.empty())
    return reference_.id;
  // What was measured before belongs to other finalists: rounds of its own for each set.
  const RaceOptions options{0,     trees_.searched, kFinalFrom + 100 * measured_, kFinalRounds,
                            false, estimator()};
  Racer reference{reference_.id, {}, false};
  const auto measure = [&](const std::string &id, int tree, int round) {
    const auto us = measureOnce(id, tree, round);
    tellProgress("final");
    return us;
  };
  if (!race(reference, racers, options, measure, kNoDrop, [&] { return isEnough(reference); }))
    return reference_.id;
  std::erase_if(racers, [](const Racer &racer) { return racer.isOut || !racer.hasRun(); });
  if (racers.empty())
    return reference_.id;
  const auto isFaster = [&](const Racer &a, const Racer &b) {
    return a.score(estimator()) < b.score(estimator());
  };
  const Racer &best = *std::min_element(racers.begin(), racers.end(), isFaster);
  for (const Racer &racer : racers) // a neighbour's is as good: one config for both
    if (known_.at(racer.id).origin == kNeighbour &&
        racer.score(estimator()) < best.score(estimator()) + kTie && racer.score(estimator()) < -kClearGain)
      return racer.id;
  return best.id;
}

/// The winner against the untuned config, in rounds of their own; then on trees that nobody searched on.
void ClassTuner::confirm(const std::string &winner, ClassReport &report) {
  const auto keepDefault = [&](const std::string &why) {
    report.entry.config = state_.untuned;
    report.entry.keepsDefault = true;
    report.entry.measurement.tunedUs = report.entry.measurement.untunedUs;
    report.gain = 1;
    report.note = why;
  };
  report.entry.config = known_.at(winner).config;
  report.entry.measurement = {untunedUs_, untunedUs_, 0, trees_.searched};
  if (winner == reference_.id)
    return keepDefault("nothing measured was faster than the untuned config");
  const auto measure = [&](const std::string &id, int tree, int round) {
    const auto us = measureOnce(id, tree, round);
    tellProgress("confirm");
    return us;
  };
  const auto against = [&](int treeBegin, int treeEnd, int from, Racer &reference) {
    std::vector<Racer> racers{{winner, {}, false}};
    (void)race(reference, racers,
               {treeBegin, treeEnd, from + 100 * measured_, kConfirmRounds, false, estimator()}, measure,
               kNoDrop, [&] { return isEnough(reference); });
    return racers.front();
  };
  Racer reference{reference_.id, {}, false};
  const Racer tuned = against(0, trees_.searched, kConfirmFrom, reference);
  if (tuned.isOut || !tuned.hasRun())
    return keepDefault("the winner failed when it was to be confirmed");
  const measure::Estimate ratio = measure::estimate(tuned.logRatios());
  report.entry.measurement = {tuned.ownUs(estimator()), tuned.referenceUs(estimator()),
                              measure::relativeSpread(tuned.roundUs()), trees_.searched};
  report.gain = std::exp(-tuned.score(estimator()));
  report.gainError = ratio.error;
  if (std::max(ratio.value, tuned.score(estimator())) + 2 * ratio.error > -kClearGain)
    return keepDefault("the best of the search is not clearly faster than the untuned config");
  const int all = static_cast<int>(trees_.samples.size());
  if (all > trees_.searched) {
    Racer untuned{reference_.id, {}, false};
    const Racer held = against(trees_.searched, all, kHeldOutFrom, untuned);
    if (held.isOut || !held.hasRun())
      return keepDefault("the winner failed on trees that were held out");
    const measure::Estimate heldOut = measure::estimate(held.logRatios());
    report.heldOutGain = std::exp(-held.score(estimator()));
    if (heldOut.value - 2 * heldOut.error > kClearLoss)
      return keepDefault("the winner is slower than the untuned config on trees that were held out");
  }
  if (known_.at(winner).origin == kNeighbour)
    report.note = "the config of a neighbouring class";
}

} // namespace deft::session
