#include "tuner/session/ClassTuner.h"

#include "runtime/config_cache/TreeClassifier.h"

#include <algorithm>
#include <cmath>

/// What becomes of the best of a search.
namespace deft::session {
namespace {

constexpr int kFinalRounds = 7, kConfirmRounds = 15, kHeldOutRounds = 9;
constexpr int kFinalFrom = 1'000'000, kConfirmFrom = 2'000'000, kHeldOutFrom = 3'000'000;
constexpr std::size_t kFinalists = 4;
/// Of them, so many may show that they are no slower on trees that were held out.
constexpr std::size_t kMostAttempts = 3;
/// When the time is over, a final and a confirmation end with so many rounds.
constexpr std::size_t kFewestRounds = 5;
/// A config is clearly faster when it is by this much, beyond twice the standard error.
constexpr double kClearGain = 0.01;
/// And clearly slower on a tree that was held out; or on all of them in the mean.
constexpr double kClearLoss = 0.02, kMeanLoss = 0.005;
/// Configs closer than this are as good as each other.
constexpr double kTie = 0.015;

const auto kNoDrop = [](const Racer &, int, double) {};

/// What a config has done where nobody searched.
struct HeldOut {
  std::vector<measure::Estimate> trees; ///< log ratios to the untuned choice
  measure::Estimate mean;

  explicit HeldOut(const Racer &held) : mean(measure::estimate(held.logRatios())) {
    for (std::size_t tree = 0; tree < held.rounds.front().own.size(); ++tree) {
      std::vector<double> logRatios;
      for (const Racer::Round &round : held.rounds)
        logRatios.push_back(round.own[tree] - round.reference[tree]);
      trees.push_back(measure::estimate(logRatios));
    }
  }
  /// On one tree clearly, or by a little in the mean.
  bool isSlower() const {
    const auto isAbove = [](const measure::Estimate &ratio, double limit) {
      return ratio.value - 2 * ratio.error > limit;
    };
    return isAbove(mean, kMeanLoss) || std::any_of(trees.begin(), trees.end(), [&](const auto &tree) {
             return isAbove(tree, kClearLoss);
           });
  }
};

config_cache::Coordinates placeOf(const Sample &sample) {
  return config_cache::TreeClassifier().measure(sample.tree).place();
}

} // namespace

bool ClassTuner::isEnough(const Racer &reference) const {
  return isCancelled() ||
         (deadline_ && Clock::now() > *deadline_ && reference.rounds.size() >= kFewestRounds);
}

/// The best of the best in a race of their own, those that may win first; the untuned config where nothing
/// promises more.
std::vector<std::string> ClassTuner::final() {
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
  // What fell behind in its race may still be the best that is no slower on other trees.
  std::vector<std::pair<double, std::string>> measured;
  for (const auto &[id, ratio] : ratios_)
    measured.emplace_back(ratio, id);
  std::sort(measured.begin(), measured.end());
  for (const auto &[ratio, id] : measured)
    if (!racers.empty() && racers.size() < kMostAttempts && ratio < 1 - kClearGain)
      add(id);
  if (racers.empty())
    return {reference_.id};
  // What was measured before belongs to other finalists: rounds of its own for each set.
  const RaceOptions options{0,     trees_.searched, kFinalFrom + 100 * measured_, kFinalRounds,
                            false, estimator()};
  Racer reference{reference_.id, {}, false};
  const auto measure = [&](const std::string &id, int tree, int round) {
    return measureFor(id, tree, round, "final");
  };
  if (!race(reference, racers, options, measure, kNoDrop, [&] { return isEnough(reference); }))
    return {reference_.id};
  std::erase_if(racers, [](const Racer &racer) { return racer.isOut || !racer.hasRun(); });
  if (racers.empty())
    return {reference_.id};
  std::stable_sort(racers.begin(), racers.end(), [&](const Racer &a, const Racer &b) {
    return a.score(estimator()) < b.score(estimator());
  });
  const double best = racers.front().score(estimator());
  const auto neighbours = std::find_if(racers.begin(), racers.end(), [&](const Racer &racer) {
    return known_.at(racer.id).origin == kNeighbour && racer.score(estimator()) < best + kTie &&
           racer.score(estimator()) < -kClearGain;
  });
  if (neighbours != racers.end()) // a neighbour's is as good: one config for both
    std::rotate(racers.begin(), neighbours, neighbours + 1);
  std::vector<std::string> ids;
  for (const Racer &racer : racers)
    if (ids.size() < kMostAttempts)
      ids.push_back(racer.id);
  return ids;
}

/// A finalist against the untuned config, in rounds of their own; then on trees that nobody searched on. One
/// that loses there is for trees like those that were searched alone. False: the next one may do better.
bool ClassTuner::confirm(const std::string &winner, int attempt, ClassReport &report) {
  const auto keepDefault = [&](const std::string &why, bool isLast = false) {
    report.entry.config = state_.untuned.front();
    report.entry.keepsDefault = true;
    report.entry.onlyFor.clear();
    report.entry.measurement.tunedUs = report.entry.measurement.untunedUs;
    report.gain = 1;
    report.note = why;
    return isLast;
  };
  report.entry.config = known_.at(winner).config;
  report.entry.keepsDefault = false;
  report.entry.onlyFor.clear();
  report.entry.measurement = {untunedUs_, untunedUs_, 0, trees_.searched};
  report.heldOutGain.reset();
  report.note.clear();
  if (winner == reference_.id)
    return keepDefault("nothing measured was faster than the untuned config", true);
  const auto measure = [&](const std::string &id, int tree, int round) {
    return measureFor(id, tree, round, "confirm");
  };
  const auto against = [&](int treeBegin, int treeEnd, int from, int rounds, Racer &reference) {
    std::vector<Racer> racers{{winner, {}, false}};
    // Rounds that no other attempt has had: what it measured then was not beside this one.
    const int firstRound = from + 100 * measured_ + attempt * kConfirmRounds;
    (void)race(reference, racers, {treeBegin, treeEnd, firstRound, rounds, false, estimator()}, measure,
               kNoDrop, [&] { return isEnough(reference); });
    return racers.front();
  };
  Racer reference{reference_.id, {}, false};
  const Racer tuned = against(0, trees_.searched, kConfirmFrom, kConfirmRounds, reference);
  if (tuned.isOut || !tuned.hasRun())
    return keepDefault("the winner failed when it was to be confirmed");
  const measure::Estimate ratio = measure::estimate(tuned.logRatios());
  report.entry.measurement = {tuned.ownUs(estimator()), tuned.referenceUs(estimator()),
                              measure::relativeSpread(tuned.roundUs()), trees_.searched};
  report.gain = std::exp(-tuned.score(estimator()));
  report.gainError = ratio.error;
  if (std::max(ratio.value, tuned.score(estimator())) + 2 * ratio.error > -kClearGain)
    return keepDefault("the best of the search is not clearly faster than the untuned config", true);
  const int all = static_cast<int>(trees_.samples.size());
  if (all > trees_.searched) {
    Racer untuned{reference_.id, {}, false};
    const Racer held = against(trees_.searched, all, kHeldOutFrom, kHeldOutRounds, untuned);
    if (held.isOut || !held.hasRun())
      return keepDefault("the winner failed on trees that were held out");
    report.heldOutGain = std::exp(-held.score(estimator()));
    if (const HeldOut heldOut(held); heldOut.isSlower()) {
      for (int i = 0; i < trees_.searched; ++i)
        report.entry.onlyFor.push_back(placeOf(*trees_.samples[static_cast<std::size_t>(i)]));
      for (std::size_t i = 0; i < heldOut.trees.size(); ++i)
        if (heldOut.trees[i].value > kMeanLoss &&
            report.entry.isFor(placeOf(*trees_.samples[static_cast<std::size_t>(trees_.searched) + i])))
          return keepDefault("the winner is slower than the untuned config on trees that were held out");
      report.note = "slower than the untuned config on other trees of the class: for trees like those given";
      return false;
    }
  }
  if (known_.at(winner).origin == kNeighbour)
    report.note = "the config of a neighbouring class";
  return true;
}

} // namespace deft::session
