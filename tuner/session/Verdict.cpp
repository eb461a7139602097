#include "tuner/session/Verdict.h"

#include "runtime/config_cache/TreeClassifier.h"
#include "tuner/session/Finalists.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace deft::session {

using config_cache::Coordinates;

namespace {

/// A config is clearly slower if it loses this much on one tree, or on average over the held-out trees.
constexpr double kClearLoss = 0.02, kMeanLoss = 0.005;
/// A config for certain trees must also suit trees that differ by at least this much: otherwise it is useless
/// for a growing tree.
constexpr double kLeastWithin = 0.025;

constexpr double kThousandths = 1000, kRoundingSlack = 1e-6;

/// The results of a config relative to the untuned choice, tree by tree.
class TreeRatios {
public:
  explicit TreeRatios(const Racer &racer) : mean_(measure::estimate(racer.logRatios())) {
    for (std::size_t tree = 0; tree < racer.trees(); ++tree)
      trees_.push_back(measure::estimate(racer.on({tree}).logRatios()));
  }

  /// Clearly slower on one tree, or slightly on average.
  bool isSlower() const { return isAbove(mean_, kMeanLoss) || isSlowerOnOne(); }
  bool isSlowerOnOne() const {
    return std::any_of(trees_.begin(), trees_.end(),
                       [](const measure::Estimate &tree) { return isAbove(tree, kClearLoss); });
  }
  /// The trees on which it is slower, even slightly; and the other trees.
  std::vector<std::size_t> slower() const { return where(true); }
  std::vector<std::size_t> notSlower() const { return where(false); }

private:
  std::vector<std::size_t> where(bool isSlower) const {
    std::vector<std::size_t> some;
    for (std::size_t tree = 0; tree < trees_.size(); ++tree)
      if ((trees_[tree].value > kMeanLoss) == isSlower)
        some.push_back(tree);
    return some;
  }
  static bool isAbove(const measure::Estimate &ratio, double limit) {
    return ratio.value - 2 * ratio.error > limit;
  }

  measure::Estimate mean_;
  std::vector<measure::Estimate> trees_; ///< logarithms
};

bool hasFailed(const Racer &racer) { return racer.isOut || !racer.hasRun(); }

} // namespace

bool ClassJudge::isClearlyFaster(const Racer &racer) const {
  const measure::Estimate ratio = measure::estimate(racer.logRatios());
  return std::max(ratio.value, racer.score(estimator_)) + 2 * ratio.error <= -kClearGain;
}

config_cache::Measurement ClassJudge::measurementOf(const Racer &racer) const {
  return {racer.ownUs(estimator_), racer.referenceUs(estimator_), measure::relativeSpread(racer.roundUs()),
          static_cast<int>(racer.trees())};
}

std::vector<Coordinates> ClassJudge::placesOf(const std::vector<std::size_t> &trees) const {
  std::vector<Coordinates> places;
  places.reserve(trees.size());
  for (const std::size_t tree : trees)
    places.push_back(config_cache::TreeClassifier().measure(trees_.samples[tree]->tree).place());
  return places;
}

Verdict ClassJudge::keepUntuned(Verdict verdict, const std::string &why) const {
  verdict.config = untuned_;
  verdict.keepsUntuned = true;
  verdict.onlyFor.clear();
  verdict.within = config_cache::kLikeness;
  verdict.measurement.tunedUs = verdict.measurement.untunedUs;
  verdict.gain = 1;
  verdict.gainError = 0;
  verdict.note = why;
  return verdict;
}

Verdict ClassJudge::settled(Verdict verdict) const {
  verdict.isSettled = true;
  return verdict;
}

Verdict ClassJudge::nothingFaster() const {
  Verdict verdict;
  verdict.measurement = {untunedUs_, untunedUs_, 0, trees_.searched};
  return settled(keepUntuned(std::move(verdict), "nothing measured was faster than the untuned config"));
}

/// Limits it to searched trees on which it is not slower. False: they are too close to a tree that loses.
bool ClassJudge::narrow(Verdict &verdict, const std::vector<std::size_t> &slower) const {
  verdict.onlyFor = placesOf(verdict.trees);
  verdict.note = "slower than the untuned config on other trees of the class: for trees like those given";
  for (const Coordinates &place : placesOf(slower))
    verdict.within = std::min(verdict.within, config_cache::distanceToNearest(verdict.onlyFor, place) / 2);
  verdict.within =
      std::floor(kThousandths * verdict.within + kRoundingSlack) / kThousandths; // as fine as coordinates
  return verdict.within >= kLeastWithin;
}

Verdict ClassJudge::onSearched(const config::Config &finalist, const Racer &raced) const {
  Verdict verdict;
  verdict.config = finalist;
  verdict.measurement = {untunedUs_, untunedUs_, 0, trees_.searched};
  if (hasFailed(raced))
    return keepUntuned(std::move(verdict), "the winner failed when it was to be confirmed");
  verdict.measurement = measurementOf(raced);
  const TreeRatios ratios(raced);
  if (isClearlyFaster(raced) && !ratios.isSlowerOnOne()) {
    verdict.trees.resize(raced.trees());
    std::iota(verdict.trees.begin(), verdict.trees.end(), std::size_t{0});
  } else {
    verdict.trees = ratios.notSlower();
  }
  const Racer own = raced.on(verdict.trees);
  if (verdict.trees.empty() || !isClearlyFaster(own))
    return settled(keepUntuned(std::move(verdict),
                               "the best of the search is not clearly faster than the untuned config"));
  verdict.measurement = measurementOf(own);
  verdict.gain = std::exp(-own.score(estimator_));
  verdict.gainError = measure::estimate(own.logRatios()).error;
  const bool isForGiven = std::any_of(verdict.trees.begin(), verdict.trees.end(),
                                      [&](std::size_t tree) { return trees_.samples[tree]->similar == 0; });
  if (verdict.trees.size() < raced.trees() && !(isForGiven && narrow(verdict, ratios.slower())))
    return keepUntuned(std::move(verdict),
                       "the winner is slower than the untuned config on trees that were searched on");
  verdict.isSettled = verdict.onlyFor.empty();
  return verdict;
}

Verdict ClassJudge::onHeldOut(Verdict verdict, const Racer &raced) const {
  verdict.isSettled = false;
  if (hasFailed(raced))
    return keepUntuned(std::move(verdict), "the winner failed on trees that were held out");
  verdict.heldOutGain = std::exp(-raced.score(estimator_));
  const TreeRatios ratios(raced);
  std::vector<std::size_t> slower = ratios.slower();
  for (std::size_t &tree : slower)
    tree += static_cast<std::size_t>(trees_.searched);
  if (ratios.isSlower() && !narrow(verdict, slower))
    return keepUntuned(std::move(verdict),
                       "the winner is slower than the untuned config on trees that were held out");
  verdict.isSettled = verdict.onlyFor.empty();
  return verdict;
}

std::optional<Verdict> firstSettled(const std::vector<std::string> &finalists,
                                    const std::vector<std::string> &others,
                                    const std::function<Verdict(const std::string &id, int attempt)> &confirm,
                                    const std::function<bool(int attempt)> &mayTry) {
  std::optional<Verdict> last, forSome; // the first one for some trees
  int attempt = 0;
  // Whether a config for all trees is found.
  const auto confirmAll = [&](const std::vector<std::string> &ids) {
    for (const std::string &id : ids) {
      if (!mayTry(attempt))
        break;
      last = confirm(id, attempt++);
      if (last->isSettled)
        return !last->keepsUntuned;
      if (!forSome && !last->onlyFor.empty())
        forSome = last;
    }
    return false;
  };
  if (confirmAll(finalists))
    return last;
  const std::optional<Verdict> ofFinalists = last;
  std::vector<std::string> rest = others;
  std::erase_if(rest, [&](const std::string &id) {
    return std::find(finalists.begin(), finalists.end(), id) != finalists.end();
  });
  if (!forSome && confirmAll(rest))
    return last;
  return forSome ? forSome : ofFinalists;
}

} // namespace deft::session
