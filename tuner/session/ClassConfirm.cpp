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
/// And clearly slower on a tree; or on all that were held out in the mean.
constexpr double kClearLoss = 0.02, kMeanLoss = 0.005;
/// What is for trees like some alone has to be for those that differ by so much at least: else it is worth
/// nothing to a tree that grows.
constexpr double kLeastWithin = 0.025;
/// Configs closer than this are as good as each other.
constexpr double kTie = 0.015;
/// Of such with fewer phases, and without a new plan for each step (burdenOf): on a tree that differs a
/// little, a single item of another phase runs alone behind all others.
constexpr double kSimplerTie = 0.01;

constexpr double kThousandths = 1000, kRoundingSlack = 1e-6;

const auto kNoDrop = [](const Racer &, int, double) {};

/// Trees on which a config is slower than the untuned choice, if by little; or the others; or all.
enum Trees { kSlower, kNoSlower, kAny };

/// What a config has done against the untuned choice, tree by tree.
class TreeRatios {
public:
  explicit TreeRatios(const Racer &racer) : mean_(measure::estimate(racer.logRatios())) {
    for (std::size_t tree = 0; tree < racer.trees(); ++tree)
      trees_.push_back(measure::estimate(racer.on({tree}).logRatios()));
  }
  /// On one tree clearly, or by a little in the mean.
  bool isSlower() const { return isAbove(mean_, kMeanLoss) || isSlowerOnOne(); }
  bool isSlowerOnOne() const {
    return std::any_of(trees_.begin(), trees_.end(),
                       [](const measure::Estimate &tree) { return isAbove(tree, kClearLoss); });
  }
  std::vector<std::size_t> where(Trees which) const {
    std::vector<std::size_t> some;
    for (std::size_t tree = 0; tree < trees_.size(); ++tree)
      if (which == kAny || (trees_[tree].value > kMeanLoss) == (which == kSlower))
        some.push_back(tree);
    return some;
  }

private:
  static bool isAbove(const measure::Estimate &ratio, double limit) {
    return ratio.value - 2 * ratio.error > limit;
  }

  measure::Estimate mean_;
  std::vector<measure::Estimate> trees_; ///< logarithms
};

} // namespace

bool ClassTuner::isEnough(const Racer &reference) const {
  return isCancelled() ||
         (deadline_ && Clock::now() > *deadline_ && reference.rounds.size() >= kFewestRounds);
}

/// Whether so many more fit into the class's time, by what those until now took.
bool ClassTuner::isTimeFor(std::size_t measurements) const {
  if (!deadline_ || made_.empty())
    return true;
  const double left = std::chrono::duration<double>(*deadline_ - Clock::now()).count();
  return static_cast<double>(measurements) * timedSeconds_ / static_cast<double>(made_.size()) <= left;
}

/// Measurements of a finalist and of what is untuned, on all trees.
std::size_t ClassTuner::fewestToConfirm() const { return 2 * kFewestRounds * trees_.samples.size(); }

/// The best of the best in a race of their own, those that may win first; the untuned config where nothing
/// promises more. Where the time is short, fewer of them.
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
  const auto simpler = std::find_if(ranking_.begin(), ranking_.end(), [&](const auto &ranked) {
    return burdenOf(ranked.second) < burdenOf(ranking_.front().second);
  });
  if (simpler != ranking_.end() && simpler->first < 1)
    add(simpler->second);
  // What fell behind in its race may still be the best that is no slower on other trees.
  std::vector<std::pair<double, std::string>> measured;
  for (const auto &[id, ratio] : ratios_)
    measured.emplace_back(ratio, id);
  std::sort(measured.begin(), measured.end());
  for (const auto &[ratio, id] : measured)
    if (!racers.empty() && racers.size() < kMostAttempts && ratio < 1 - kClearGain)
      add(id);
  const auto searched = static_cast<std::size_t>(trees_.searched);
  while (racers.size() > 1 && !isTimeFor(fewestToConfirm() + (racers.size() + 1) * kFewestRounds * searched))
    racers.pop_back();
  if (racers.empty())
    return {kUntuned};
  if (racers.size() == 1) // what it would show, the confirmation does
    return {racers.front().id};
  // What was measured before belongs to other finalists: rounds of its own for each set.
  const RaceOptions options{0,     trees_.searched, kFinalFrom + 100 * measured_, kFinalRounds,
                            false, estimator()};
  Racer reference{kUntuned, {}, false};
  const auto measure = [&](const std::string &id, int tree, int round) {
    return measureFor(id, tree, round, "final");
  };
  if (!race(reference, racers, options, measure, kNoDrop, [&] { return isEnough(reference); }))
    return {kUntuned};
  std::erase_if(racers, [](const Racer &racer) { return racer.isOut || !racer.hasRun(); });
  if (racers.empty())
    return {kUntuned};
  std::stable_sort(racers.begin(), racers.end(), [&](const Racer &a, const Racer &b) {
    return a.score(estimator()) < b.score(estimator());
  });
  const auto prefer = [&](double tie, const auto &isWanted) {
    putFirst(racers, isWanted, estimator(), tie, -kClearGain);
  };
  // A neighbour's is as good: one config for both.
  prefer(kTie, [&](const Racer &racer) { return known_.at(racer.id).origin == kNeighbour; });
  const std::size_t most = burdenOf(racers.front().id);
  prefer(kSimplerTie, [&](const Racer &racer) { return burdenOf(racer.id) < most; });
  std::vector<std::string> ids;
  for (const Racer &racer : racers)
    if (ids.size() < kMostAttempts)
      ids.push_back(racer.id);
  return ids;
}

/// What was the fastest on one of the given trees, of all that stayed to the end of their race, where it was
/// so clearly, the fastest first: where nothing is faster on all trees, this may be for some.
std::vector<std::string> ClassTuner::bestOfSome() const {
  std::set<std::pair<double, std::string>> best;
  for (const auto &[tree, ratioAndId] : bestOfTree_)
    if (ratioAndId.first < 1 - 2 * kClearGain)
      best.insert(ratioAndId);
  std::vector<std::string> ids;
  for (const auto &[ratio, id] : best)
    if (std::find(ids.begin(), ids.end(), id) == ids.end())
      ids.push_back(id);
  ids.resize(std::min(ids.size(), kMostAttempts));
  return ids;
}

/// A finalist against the untuned config on trees [begin, end), in rounds that no other attempt has had: what
/// that measured was not beside this one.
Racer ClassTuner::duel(const std::string &finalist, int attempt, const RaceOptions &options) {
  Racer reference{kUntuned, {}, false};
  std::vector<Racer> racers{{finalist, {}, false}};
  RaceOptions own = options;
  own.firstRound += 100 * measured_ + attempt * kConfirmRounds;
  own.dropsHopeless = false;
  own.estimator = estimator();
  const auto measure = [&](const std::string &id, int tree, int round) {
    return measureFor(id, tree, round, "confirm");
  };
  (void)race(reference, racers, own, measure, kNoDrop, [&] { return isEnough(reference); });
  return racers.front();
}

bool ClassTuner::isClearlyFaster(const Racer &racer) const {
  const measure::Estimate ratio = measure::estimate(racer.logRatios());
  return std::max(ratio.value, racer.score(estimator())) + 2 * ratio.error <= -kClearGain;
}

bool ClassTuner::keepUntuned(const std::string &why, ClassReport &report) const {
  report.entry.config = state_.untuned.front();
  report.entry.keepsDefault = true;
  report.entry.onlyFor.clear();
  report.entry.within = config_cache::kLikeness;
  report.entry.measurement.tunedUs = report.entry.measurement.untunedUs;
  report.gain = 1;
  report.gainError = 0;
  report.note = why;
  return false;
}

/// A finalist that is clearly faster than the untuned config wins, also on trees that nobody searched on. One
/// that loses on some trees is for the searched ones that it does not lose on and others like them alone, up
/// to half way to those that it loses on, if none of these is next to them, and one of them was given.
/// Whether it is settled what the class gets; else the next one may do better.
bool ClassTuner::confirm(const std::string &winner, int attempt, ClassReport &report) {
  report.entry.keepsDefault = false;
  report.entry.onlyFor.clear();
  report.entry.within = config_cache::kLikeness;
  report.entry.measurement = {untunedUs_, untunedUs_, 0, trees_.searched};
  report.heldOutGain.reset();
  report.note.clear();
  if (winner == kUntuned) {
    keepUntuned("nothing measured was faster than the untuned config", report);
    return true;
  }
  report.entry.config = known_.at(winner).config;
  const Racer raced = duel(winner, attempt, {0, trees_.searched, kConfirmFrom, kConfirmRounds});
  if (raced.isOut || !raced.hasRun())
    return keepUntuned("the winner failed when it was to be confirmed", report);
  const TreeRatios searched(raced);
  const auto measurementOf = [&](const Racer &racer) {
    return config_cache::Measurement{racer.ownUs(estimator()), racer.referenceUs(estimator()),
                                     measure::relativeSpread(racer.roundUs()),
                                     static_cast<int>(racer.trees())};
  };
  report.entry.measurement = measurementOf(raced);
  const bool isForAll = isClearlyFaster(raced) && !searched.isSlowerOnOne();
  const std::vector<std::size_t> own = searched.where(isForAll ? kAny : kNoSlower);
  const Racer tuned = raced.on(own);
  if (own.empty() || !isClearlyFaster(tuned)) {
    keepUntuned("the best of the search is not clearly faster than the untuned config", report);
    return true;
  }
  report.entry.measurement = measurementOf(tuned);
  report.gain = std::exp(-tuned.score(estimator()));
  report.gainError = measure::estimate(tuned.logRatios()).error;

  // To the searched trees on which it is no slower. False: one on which it is stands next to these.
  const auto narrow = [&](const TreeRatios &ratios, int first) {
    report.entry.onlyFor = placesOf(own, 0);
    report.note = "slower than the untuned config on other trees of the class: for trees like those given";
    double &within = report.entry.within;
    for (const config_cache::Coordinates &slower : placesOf(ratios.where(kSlower), first))
      within = std::min(within, config_cache::distanceToNearest(report.entry.onlyFor, slower) / 2);
    within = std::floor(kThousandths * within + kRoundingSlack) / kThousandths; // as fine as places
    return within >= kLeastWithin;
  };
  const bool isForGiven = std::any_of(own.begin(), own.end(),
                                      [&](std::size_t tree) { return trees_.samples[tree]->similar == 0; });
  if (own.size() < raced.trees() && !(isForGiven && narrow(searched, 0)))
    return keepUntuned("the winner is slower than the untuned config on trees that were searched on", report);
  if (const int all = static_cast<int>(trees_.samples.size()); all > trees_.searched) {
    const Racer held = duel(winner, attempt, {trees_.searched, all, kHeldOutFrom, kHeldOutRounds});
    if (held.isOut || !held.hasRun())
      return keepUntuned("the winner failed on trees that were held out", report);
    report.heldOutGain = std::exp(-held.score(estimator()));
    if (const TreeRatios heldOut(held); heldOut.isSlower() && !narrow(heldOut, trees_.searched))
      return keepUntuned("the winner is slower than the untuned config on trees that were held out", report);
  }
  if (!report.entry.onlyFor.empty())
    return false;
  if (known_.at(winner).origin == kNeighbour)
    report.note = "the config of a neighbouring class";
  return true;
}

/// The finalists in turn, until it is settled what the class gets; where that is the untuned config, those
/// that may be for some of its trees.
void ClassTuner::confirmInTurn(ClassReport &report) {
  std::optional<ClassReport> forSome; // the first one
  int attempt = 0;
  const auto settle = [&](const std::vector<std::string> &ids) {
    for (const std::string &id : ids) {
      if (isCancelled() || (attempt > 0 && !isTimeFor(fewestToConfirm())))
        break;
      if (confirm(id, attempt++, report))
        return !report.entry.keepsDefault;
      if (!forSome && !report.entry.onlyFor.empty())
        forSome = report;
    }
    return false;
  };
  const std::vector<std::string> finalists = final();
  if (settle(finalists))
    return;
  const ClassReport ofFinalists = report;
  std::vector<std::string> others = bestOfSome();
  std::erase_if(others, [&](const std::string &id) {
    return std::find(finalists.begin(), finalists.end(), id) != finalists.end();
  });
  if (!forSome && settle(others))
    return;
  report = forSome.value_or(ofFinalists);
}

/// Where trees of the class stand, counted from `first`.
std::vector<config_cache::Coordinates> ClassTuner::placesOf(const std::vector<std::size_t> &trees,
                                                            int first) const {
  std::vector<config_cache::Coordinates> places;
  for (const std::size_t tree : trees)
    places.push_back(config_cache::TreeClassifier()
                         .measure(trees_.samples[static_cast<std::size_t>(first) + tree]->tree)
                         .place());
  return places;
}

} // namespace deft::session
