#include "tuner/search/Strategy.h"
#include "tuner/search/Surrogate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

namespace deft::search {

using space::Knob;
using space::Point;

namespace {

/// Shapes with more kernels than this are entered at typical ones; the rest is found as neighbours.
constexpr std::size_t kMostKernels = 16;
/// From how many of the best the neighbours are looked at.
constexpr std::size_t kCentres = 4;
/// What is predicted to take more than this many times the least is no probe.
constexpr double kProbeUpTo = 1.6;
constexpr std::size_t kMostProbes = 8;
/// Below this expected gain, a search is done: relative to the best.
constexpr double kLeastGain = 0.001;

/// How far the kernels are from what usually is right: steps of 64 tokens, a ring as deep as leaves room for
/// two blocks, four warps.
double oddness(const space::Space &space, const Point &point) {
  const config::Config config = space.configOf(point);
  double sum = 0;
  for (const config::PhaseConfig &phase : config.phases) {
    sum += std::abs(std::log2(phase.tileKv / 64.0)) +
           std::abs(std::log2(phase.warps / std::max(4.0, phase.tileQ / 16.0)));
    const int blocks = space.target() ? space::blocksPerSm(space.kernel(), phase, *space.target()) : 2;
    sum += (blocks < 2 && phase.family == config::Family::Sm80 ? 2 : 0) - 0.25 * phase.stages;
  }
  return sum;
}

/// One kernel for each way to set rows and boundaries, those being what plans follow from.
std::vector<Point> typicalKernels(const space::Space &space, int shape) {
  const std::vector<Point> all = space.kernelsOf(shape);
  if (all.size() <= kMostKernels)
    return all;
  const std::vector<space::Axis> &axes = space.axes(shape);
  std::map<std::vector<int>, std::pair<double, Point>> best;
  for (const Point &point : all) {
    std::vector<int> key;
    for (std::size_t i = 0; i < axes.size(); ++i)
      if (axes[i].knob == Knob::TileQ || axes[i].knob == Knob::RowsAbove)
        key.push_back(point.at[i]);
    const double odd = oddness(space, point);
    const auto [found, isNew] = best.try_emplace(key, odd, point);
    if (!isNew && odd < found->second.first)
      found->second = {odd, point};
  }
  std::vector<Point> typical;
  for (const auto &[key, entry] : best)
    typical.push_back(entry.second);
  return typical;
}

class Guided : public Strategy {
public:
  Guided(const space::Space &space, Predictor &predictor)
      : space_(space), predictor_(predictor), surrogate_(space) {
    for (std::size_t shape = 0; shape < space.shapes().size(); ++shape)
      for (const Point &kernels : typicalKernels(space, static_cast<int>(shape)))
        for (const Point &point : space.plansOf(kernels))
          consider(point);
  }

  std::vector<Point> propose(int count) override {
    if (!hasProbes_)
      chooseProbes();
    considerNeighbours();
    std::vector<Point> chosen;
    std::map<Point, double> believed; // what is chosen is taken to turn out as believed, until it is told
    while (static_cast<int>(chosen.size()) < count) {
      if (!probes_.empty()) {
        Candidate &probe = pool_.at(probes_.back());
        probes_.pop_back();
        if (!std::exchange(probe.isProposed, true))
          chosen.push_back(probe.point);
        continue;
      }
      fit(believed);
      const Candidate *best = nullptr;
      double mostGain = kLeastGain;
      for (const auto &[point, candidate] : pool_) {
        if (candidate.isProposed)
          continue;
        const double gain = expectedGain(surrogate_.believe(point, candidate.predictedUs));
        if (gain > mostGain || !best) {
          if (gain <= mostGain)
            continue;
          mostGain = gain;
          best = &candidate;
        }
      }
      if (!best)
        break;
      Candidate &taken = pool_.at(best->point);
      taken.isProposed = true;
      chosen.push_back(taken.point);
      believed[taken.point] = std::exp(surrogate_.believe(taken.point, taken.predictedUs).logUs);
    }
    return chosen;
  }

  void tell(const Point &point, std::optional<double> microseconds) override {
    consider(point);
    if (const auto found = pool_.find(point); found != pool_.end())
      found->second.isProposed = true;
    if (microseconds)
      told_[point] = *microseconds;
  }

private:
  struct Candidate {
    Point point;
    double predictedUs = 0;
    bool isProposed = false;
  };

  void consider(const Point &point) {
    if (pool_.contains(point))
      return;
    if (const auto us = predictor_.microseconds(point))
      pool_.emplace(point, Candidate{point, *us, false});
  }

  /// The model errs most between ways to cut, of which there are few: the best of each is measured first,
  /// where it promises anything.
  void chooseProbes() {
    hasProbes_ = true;
    std::map<std::pair<int, int>, const Candidate *> best;
    double leastUs = std::numeric_limits<double>::infinity();
    for (const auto &[point, candidate] : pool_) {
      leastUs = std::min(leastUs, candidate.predictedUs);
      const Candidate *&own = best[kindOf(point)];
      if (!own || candidate.predictedUs < own->predictedUs)
        own = &candidate;
    }
    std::vector<std::pair<double, Point>> ranked;
    for (const auto &[kind, candidate] : best)
      if (candidate->predictedUs <= kProbeUpTo * leastUs)
        ranked.emplace_back(candidate->predictedUs, candidate->point);
    std::sort(ranked.rbegin(), ranked.rend()); // the most promising last: they are taken from the end
    if (ranked.size() > kMostProbes)
      ranked.erase(ranked.begin(), ranked.end() - static_cast<std::ptrdiff_t>(kMostProbes));
    for (const auto &[us, point] : ranked)
      probes_.push_back(point);
  }

  /// Shape and partition.
  std::pair<int, int> kindOf(const Point &point) const {
    const std::vector<space::Axis> &axes = space_.axes(point.shape);
    for (std::size_t i = 0; i < axes.size(); ++i)
      if (axes[i].knob == Knob::Partition)
        return {point.shape, point.at[i]};
    return {point.shape, 0};
  }

  void considerNeighbours() {
    std::vector<std::pair<double, Point>> best;
    for (const auto &[point, us] : told_)
      best.emplace_back(us, point);
    std::sort(best.begin(), best.end());
    for (std::size_t i = 0; i < std::min(best.size(), kCentres); ++i)
      if (centres_.insert(best[i].second).second)
        for (const Point &point : space_.neighbours(best[i].second))
          consider(point);
  }

  void fit(const std::map<Point, double> &believed) {
    surrogate_.clear();
    bestLogUs_ = std::numeric_limits<double>::infinity();
    for (const std::map<Point, double> *outcomes : {&std::as_const(told_), &believed})
      for (const auto &[point, us] : *outcomes) {
        if (const auto found = pool_.find(point); found != pool_.end())
          surrogate_.add(point, found->second.predictedUs, us);
        bestLogUs_ = std::min(bestLogUs_, std::log(us));
      }
    surrogate_.fit();
    if (!std::isinf(bestLogUs_))
      return;
    for (const auto &[point, candidate] : pool_) // nothing is measured: against the best of the model
      bestLogUs_ = std::min(bestLogUs_, std::log(candidate.predictedUs));
  }

  /// How much less than the best a candidate can be expected to take, where one that takes more counts as
  /// none.
  double expectedGain(const Surrogate::Belief &belief) const {
    const double below = bestLogUs_ - belief.logUs;
    if (belief.deviation < 1e-9)
      return std::max(below, 0.0);
    const double z = below / belief.deviation;
    const double density = std::exp(-0.5 * z * z) / std::sqrt(2 * M_PI);
    return below * 0.5 * std::erfc(-z / std::sqrt(2)) + belief.deviation * density;
  }

  const space::Space &space_;
  Predictor &predictor_;
  Surrogate surrogate_;
  std::map<Point, Candidate> pool_;
  std::map<Point, double> told_;
  bool hasProbes_ = false;
  std::vector<Point> probes_; ///< to be proposed, the first at the end
  std::set<Point> centres_;   ///< whose neighbours are in the pool
  double bestLogUs_ = 0;
};

} // namespace

std::unique_ptr<Strategy> guided(const space::Space &space, Predictor &predictor) {
  return std::make_unique<Guided>(space, predictor);
}

} // namespace deft::search
