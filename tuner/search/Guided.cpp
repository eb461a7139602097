#include "tuner/search/Strategy.h"
#include "tuner/search/Surrogate.h"
#include "tuner/search/TypicalKernels.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace deft::search {

using space::Knob;
using space::Point;

namespace {

/// The number of best points whose neighbours are considered.
constexpr std::size_t kCentres = 8;
/// A point that is predicted to take longer than this multiple of the least is no probe.
constexpr double kProbeUpTo = 1.6;
constexpr std::size_t kMostProbes = 8;
/// The assumed cost of each unit of oddness, as a share of the time, for axes outside of the model (stages).
constexpr double kOfOddness = 0.02;
/// The oddness of a candidate that seems to equal another one.
constexpr double kAgain = 2;
/// A search ends below this expected gain, relative to the best.
constexpr double kLeastGain = 0.001;

class GuidedStrategy : public Strategy {
public:
  GuidedStrategy(const space::Space &space, Predictor &predictor)
      : space_(space), predictor_(predictor), surrogate_(space) {
    for (std::size_t shape = 0; shape < space.shapes().size(); ++shape)
      for (const Point &kernels : typicalKernels(space, static_cast<int>(shape)))
        consider(withoutDerived(space.plansOf(kernels)));
  }

  std::vector<Point> propose(int count) override {
    if (!hasProbes_)
      chooseProbes();
    considerNeighbours();
    std::vector<Point> chosen;
    while (static_cast<int>(chosen.size()) < count) {
      if (!probes_.empty()) {
        PooledPoint &probe = pool_.at(probes_.back());
        probes_.pop_back();
        if (!probe.isProposed) {
          fit();
          choose(probe, chosen);
        }
        continue;
      }
      fit();
      PooledPoint *best = nullptr;
      double mostGain = kLeastGain;
      for (auto &[point, candidate] : pool_) {
        if (candidate.isProposed)
          continue;
        const double gain = expectedGain(surrogate_.believe(point, candidate.predictedUs, candidate.memory));
        if (gain > mostGain) {
          mostGain = gain;
          best = &candidate;
        }
      }
      if (!best)
        break;
      choose(*best, chosen);
    }
    return chosen;
  }

  void tell(const Point &point, std::optional<double> microseconds) override {
    consider(point);
    if (const auto found = pool_.find(point); found != pool_.end())
      found->second.isProposed = true;
    if (microseconds)
      measured_[point] = *microseconds;
    // Outcomes replace beliefs one by one. If a point is unusable, its sample must be removed.
    if (believed_.erase(point) > 0 && !microseconds) {
      samples_.clear();
      surrogate_.clear();
    }
  }

private:
  struct PooledPoint {
    Point point;
    double predictedUs = 0;
    bool isProposed = false;
    Surrogate::Memory memory;
  };

  /// Until a chosen point is measured, its predicted time is assumed.
  void choose(PooledPoint &candidate, std::vector<Point> &chosen) {
    candidate.isProposed = true;
    chosen.push_back(candidate.point);
    believed_[candidate.point] =
        std::exp(surrogate_.believe(candidate.point, candidate.predictedUs, candidate.memory).logUs);
  }

  void consider(const Point &point) {
    if (pool_.contains(point))
      return;
    const auto us = predictor_.microseconds(point);
    if (!us)
      return;
    const std::vector<int> kernels(point.at.begin() + space_.planAxisCount(), point.at.end());
    const bool isAgain = !plans_.emplace(point.shape, kernels, *us).second && isDerived(point);
    const double odd = oddness(space_, point) + (isAgain ? kAgain : 0);
    pool_.emplace(point, PooledPoint{point, *us * (1 + kOfOddness * odd), false, {}});
  }

  /// Points that are only proposed as neighbours of the best. These are `auto`, if all partitions that it
  /// chooses from are in the space, because planning it means planning all others; and orders other than the
  /// first, which the model ignores.
  std::vector<Point> withoutDerived(std::vector<Point> points) const {
    constexpr std::size_t kOthers = 7;
    const auto isLeft = [](const space::Axis &axis, int at) {
      if (axis.knob == Knob::Order)
        return at != 0;
      return axis.knob == Knob::Partition && axis.values.size() > kOthers &&
             axis.values[static_cast<std::size_t>(at)] == static_cast<int>(spec::Partition::Auto);
    };
    std::erase_if(points, [&](const Point &point) {
      const std::vector<space::Axis> &axes = space_.axes(point.shape);
      for (std::size_t i = 0; i < axes.size(); ++i)
        if (isLeft(axes[i], point.at[i]))
          return true;
      return false;
    });
    return points;
  }

  void consider(const std::vector<Point> &points) {
    for (const bool ofDerived : {false, true})
      for (const Point &point : points)
        if (isDerived(point) == ofDerived)
          consider(point);
  }

  /// `auto` makes the same plan as one of the others, and other prices often change nothing. If the model
  /// predicts the same time with the same kernels, the point is considered a repetition.
  bool isDerived(const Point &point) const {
    const std::vector<space::Axis> &axes = space_.axes(point.shape);
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const int value = axes[i].values[static_cast<std::size_t>(point.at[i])];
      if ((axes[i].knob == Knob::Partition && value == static_cast<int>(spec::Partition::Auto)) ||
          (axes[i].knob == Knob::Cost && value != 0) || (axes[i].knob == Knob::Order && point.at[i] != 0))
        return true;
    }
    return false;
  }

  /// The model's largest errors are between kinds of kernels and between partitions. There are few of both,
  /// so the best point of each is measured first, if it is promising.
  void chooseProbes() {
    hasProbes_ = true;
    std::map<int, const PooledPoint *> ofShape, ofPartition;
    double leastUs = std::numeric_limits<double>::infinity();
    for (const auto &[point, candidate] : pool_) {
      leastUs = std::min(leastUs, candidate.predictedUs);
      for (const PooledPoint **own : {&ofShape[point.shape], &ofPartition[partitionOf(point)]})
        if (!*own || candidate.predictedUs < (*own)->predictedUs)
          *own = &candidate;
    }
    std::set<std::pair<double, Point>> chosen;
    for (const auto *kinds : {&ofShape, &ofPartition}) {
      std::set<std::pair<double, Point>> ranked;
      for (const auto &[kind, candidate] : *kinds)
        if (candidate->predictedUs <= kProbeUpTo * leastUs)
          ranked.emplace(candidate->predictedUs, candidate->point);
      for (const auto &probe : ranked)
        if (chosen.size() < kMostProbes)
          chosen.insert(probe);
    }
    for (auto probe = chosen.rbegin(); probe != chosen.rend(); ++probe)
      probes_.push_back(probe->second);
  }

  int partitionOf(const Point &point) const {
    const std::vector<space::Axis> &axes = space_.axes(point.shape);
    for (std::size_t i = 0; i < axes.size(); ++i)
      if (axes[i].knob == Knob::Partition)
        return point.at[i];
    return 0;
  }

  void considerNeighbours() {
    std::vector<std::pair<double, Point>> best;
    best.reserve(measured_.size());
    for (const auto &[point, us] : measured_)
      best.emplace_back(us, point);
    std::sort(best.begin(), best.end());
    for (std::size_t i = 0; i < std::min(best.size(), kCentres); ++i)
      if (centres_.insert(best[i].second).second)
        consider(space_.neighbours(best[i].second));
  }

  void fit() {
    bestLogUs_ = std::numeric_limits<double>::infinity();
    for (const std::map<Point, double> *outcomes : {&std::as_const(measured_), &std::as_const(believed_)})
      for (const auto &[point, us] : *outcomes) {
        bestLogUs_ = std::min(bestLogUs_, std::log(us));
        const auto found = pool_.find(point);
        if (found == pool_.end())
          continue;
        const double predictedUs = found->second.predictedUs;
        if (const auto sample = samples_.find(point); sample != samples_.end())
          surrogate_.change(sample->second, predictedUs, us);
        else
          samples_[point] = surrogate_.add(point, predictedUs, us);
      }
    surrogate_.fit();
    if (!std::isinf(bestLogUs_))
      return;
    for (const auto &[point, candidate] : pool_) // no measurements yet: compare with the model's best
      bestLogUs_ = std::min(bestLogUs_, std::log(candidate.predictedUs));
  }

  /// The expected gain of a candidate over the best, where a slower result counts as
  /// 0.
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
  std::map<Point, PooledPoint> pool_;
  std::set<std::tuple<int, std::vector<int>, double>> plans_; ///< shape, kernels, predicted time
  std::map<Point, double> measured_, believed_;
  std::map<Point, std::size_t> samples_; ///< numbers of the surrogate's samples
  bool hasProbes_ = false;
  std::vector<Point> probes_; ///< to propose, the first one at the end
  std::set<Point> centres_;   ///< points whose neighbours are in the pool
  double bestLogUs_ = 0;
};

} // namespace

std::unique_ptr<Strategy> guided(const space::Space &space, Predictor &predictor) {
  return std::make_unique<GuidedStrategy>(space, predictor);
}

} // namespace deft::search
