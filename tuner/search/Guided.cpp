#include "tuner/search/Strategy.h"
#include "tuner/search/TypicalKernels.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace deft::search {

using space::Knob;
using space::Point;

namespace {

/// What the model knows nothing of, as stages, is taken to cost so much of the time for each unit of oddness.
constexpr double kOfOddness = 0.02;
/// What is predicted to take more than this many times the least is no probe.
constexpr double kProbeUpTo = 1.6;
constexpr std::size_t kMostProbes = 8;
/// So many measured in a row without a gain end a search, a gain being this much of the best.
constexpr int kPatience = 32;
constexpr double kLeastGain = 0.001;

/// Prices rank the candidates; measurements say beside which the next ones are.
class GuidedStrategy : public Strategy {
public:
  GuidedStrategy(const space::Space &space, Predictor &predictor) : space_(space), predictor_(predictor) {
    for (std::size_t shape = 0; shape < space.shapes().size(); ++shape)
      for (const Point &kernels : typicalKernels(space, static_cast<int>(shape)))
        for (const Point &point : space.plansOf(kernels))
          if (!isLeftToNeighbours(point))
            consider(point);
  }

  std::vector<Point> propose(int count) override {
    if (!std::exchange(hasProbes_, true))
      chooseProbes();
    std::vector<Point> chosen;
    while (static_cast<int>(chosen.size()) < count && sinceGain_ < kPatience) {
      const auto next = cheapest();
      if (!next)
        break;
      (*next)->second.isProposed = true;
      chosen.push_back((*next)->first);
    }
    return chosen;
  }

  void tell(const Point &point, std::optional<double> microseconds) override {
    consider(point);
    const auto found = pool_.find(point);
    if (found != pool_.end())
      found->second.isProposed = true;
    if (!microseconds)
      return;
    if (found != pool_.end()) {
      const double error = std::log(*microseconds / found->second.predictedUs);
      ofAll_.add(error);
      ofKind_[kindOf(point)].add(error);
    }
    ++sinceGain_;
    if (*microseconds < (1 - kLeastGain) * bestUs_)
      sinceGain_ = 0;
    if (*microseconds >= bestUs_)
      return;
    bestUs_ = *microseconds;
    beside_.clear();
    for (const Point &neighbour : space_.neighbours(point)) {
      consider(neighbour);
      beside_.insert(neighbour);
    }
  }

private:
  struct Candidate {
    double predictedUs = 0;
    bool isProposed = false;
  };
  using Pool = std::map<Point, Candidate>;
  using Ranked = std::pair<double, Point>; ///< predicted time and point

  /// `auto`, where the partitions that it chooses from are there themselves, makes the plan of one of these,
  /// and other prices often do; of other orders than the first the model says nothing.
  bool isLeftToNeighbours(const Point &point) const {
    constexpr std::size_t kOthers = 7;
    const std::vector<space::Axis> &axes = space_.axes(point.shape);
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const int value = axes[i].values[static_cast<std::size_t>(point.at[i])];
      if (((axes[i].knob == Knob::Order || axes[i].knob == Knob::Cost) && point.at[i] != 0) ||
          (axes[i].knob == Knob::Partition && axes[i].values.size() > kOthers &&
           value == static_cast<int>(spec::Partition::Auto)))
        return true;
    }
    return false;
  }

  void consider(const Point &point) {
    if (pool_.contains(point))
      return;
    if (const auto us = predictor_.microseconds(point))
      pool_.emplace(point, Candidate{*us * (1 + kOfOddness * oddness(space_, point)), false});
  }

  /// The prices err most between makes of kernels and between ways to cut, of which there are few: the best
  /// of each is measured first, where it promises anything.
  void chooseProbes() {
    std::map<std::pair<int, int>, Ranked> best; ///< by 0 and the shape, by 1 and the partition
    double leastUs = std::numeric_limits<double>::infinity();
    for (const auto &[point, candidate] : pool_) {
      const Ranked ranked(candidate.predictedUs, point);
      leastUs = std::min(leastUs, candidate.predictedUs);
      for (const auto &kind : {std::pair(0, point.shape), std::pair(1, partitionOf(point))}) {
        Ranked &own = best.try_emplace(kind, ranked).first->second;
        own = std::min(own, ranked);
      }
    }
    for (const auto &[kind, ranked] : best)
      if (ranked.first <= kProbeUpTo * leastUs && probes_.size() < kMostProbes)
        probes_.insert(ranked);
  }

  int partitionOf(const Point &point) const {
    const std::vector<space::Axis> &axes = space_.axes(point.shape);
    for (std::size_t i = 0; i < axes.size(); ++i)
      if (axes[i].knob == Knob::Partition)
        return point.at[i];
    return 0;
  }

  /// By how much prices err, as far as that was measured.
  struct Error {
    double logs = 0;
    int count = 0;

    void add(double log) {
      logs += log;
      ++count;
    }
    double mean() const { return count > 0 ? logs / count : 0; }
  };
  using Kind = std::pair<int, int>; ///< shape and partition

  Kind kindOf(const Point &point) const { return {point.shape, partitionOf(point)}; }

  /// The price, corrected by what was measured of the candidate's kind, and by all that was as one of these.
  double believedLog(const Pool::value_type &candidate) const {
    const auto kind = ofKind_.find(kindOf(candidate.first));
    const Error own = kind == ofKind_.end() ? Error{} : kind->second;
    return std::log(candidate.second.predictedUs) + (own.logs + ofAll_.mean()) / (own.count + 1);
  }

  /// The probes, then of the neighbours of the best, else of all: what is believed to take least.
  std::optional<Pool::iterator> cheapest() {
    while (!probes_.empty()) {
      const auto probe = pool_.find(probes_.extract(probes_.begin()).value().second);
      if (!probe->second.isProposed)
        return probe;
    }
    for (const bool isBeside : {true, false}) {
      std::optional<Pool::iterator> least;
      double leastLog = std::numeric_limits<double>::infinity();
      for (auto one = pool_.begin(); one != pool_.end(); ++one) {
        if (one->second.isProposed || (isBeside && !beside_.contains(one->first)))
          continue;
        if (const double believed = believedLog(*one); believed < leastLog) {
          least = one;
          leastLog = believed;
        }
      }
      if (least)
        return least;
    }
    return std::nullopt;
  }

  const space::Space &space_;
  Predictor &predictor_;
  Pool pool_;
  bool hasProbes_ = false;
  Error ofAll_;
  std::map<Kind, Error> ofKind_;
  std::set<Ranked> probes_; ///< to be proposed
  std::set<Point> beside_;  ///< the neighbours of the best
  double bestUs_ = std::numeric_limits<double>::infinity();
  int sinceGain_ = 0; ///< so many were measured
};

} // namespace

std::unique_ptr<Strategy> guided(const space::Space &space, Predictor &predictor) {
  return std::make_unique<GuidedStrategy>(space, predictor);
}

} // namespace deft::search
