#include "tuner/search/Surrogate.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace deft::search {

using space::Knob;
using space::Point;

namespace {

// Of the logarithm of time. The model's common factor is unknown by e; beside it single candidates are off by
// a third; a measurement by one in a hundred.
constexpr double kCommon = 1, kOwn = 0.35, kNoise = 0.01;
/// Distance at which what was learnt of one point says little of another.
constexpr double kReach = 1.5;

/// Of one step along an axis; of any other value where it is not ordered.
double stepOf(Knob knob) {
  switch (knob) {
  case Knob::Partition:
    return 1;
  case Knob::Cost:
    return 0.4;
  case Knob::Chunk:
    return 0.25;
  case Knob::TileQ:
    return 0.5;
  default:
    return 0.3;
  }
}
constexpr double kOtherShape = 1.5;

} // namespace

double Surrogate::distance(const Point &a, const Point &b) const {
  const std::vector<space::Axis> &axes = space_.axes(a.shape);
  const bool isSameShape = a.shape == b.shape;
  double sum = isSameShape ? 0 : kOtherShape;
  const std::size_t common = isSameShape ? axes.size() : static_cast<std::size_t>(space_.planAxisCount());
  for (std::size_t i = 0; i < common; ++i) {
    if (a.at[i] == b.at[i])
      continue;
    const double steps = axes[i].isOrdered() ? std::abs(a.at[i] - b.at[i]) : 1;
    sum += steps * stepOf(axes[i].knob);
  }
  return sum;
}

double Surrogate::covariance(const Point &a, const Point &b) const {
  return kCommon * kCommon + kOwn * kOwn * std::exp(-distance(a, b) / kReach);
}

void Surrogate::add(const Point &point, double predictedUs, double measuredUs) {
  samples_.push_back({point, std::log(measuredUs) - std::log(predictedUs)});
}

void Surrogate::fit() {
  const std::size_t n = samples_.size();
  cholesky_.assign(n * n, 0);
  weights_.assign(n, 0);
  const auto at = [&](std::size_t row, std::size_t column) -> double & {
    return cholesky_[row * n + column];
  };
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = covariance(samples_[i].point, samples_[j].point) + (i == j ? kNoise * kNoise : 0);
      for (std::size_t k = 0; k < j; ++k)
        sum -= at(i, k) * at(j, k);
      at(i, j) = i == j ? std::sqrt(std::max(sum, 1e-12)) : sum / at(j, j);
    }
  for (std::size_t i = 0; i < n; ++i) { // forwards, then backwards
    double sum = samples_[i].residual;
    for (std::size_t k = 0; k < i; ++k)
      sum -= at(i, k) * weights_[k];
    weights_[i] = sum / at(i, i);
  }
  for (std::size_t i = n; i-- > 0;) {
    double sum = weights_[i];
    for (std::size_t k = i + 1; k < n; ++k)
      sum -= at(k, i) * weights_[k];
    weights_[i] = sum / at(i, i);
  }
}

Surrogate::Belief Surrogate::believe(const Point &point, double predictedUs) const {
  const std::size_t n = samples_.size();
  double mean = std::log(predictedUs), explained = 0;
  std::vector<double> solved(n);
  for (std::size_t i = 0; i < n; ++i) {
    const double own = covariance(samples_[i].point, point);
    mean += own * weights_[i];
    double sum = own;
    for (std::size_t k = 0; k < i; ++k)
      sum -= cholesky_[i * n + k] * solved[k];
    solved[i] = sum / cholesky_[i * n + i];
    explained += solved[i] * solved[i];
  }
  const double variance = kCommon * kCommon + kOwn * kOwn - explained;
  return {mean, std::sqrt(std::max(variance, 0.0))};
}

} // namespace deft::search
