#include "tuner/search/Surrogate.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace deft::search {

using space::Knob;
using space::Point;

namespace {

// Of the logarithm of time. The model's common factor is unknown by e; what it gets wrong about a value of
// one axis, whatever the others are, by a fifth; about a single candidate by another fourth; a measurement by
// one in a hundred.
constexpr double kCommon = 1, kOfAxis = 0.2, kOwn = 0.25, kNoise = 0.01;
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

/// Along one axis.
double Surrogate::distanceOn(std::size_t axis, const Point &a, const Point &b) const {
  if (a.at[axis] == b.at[axis])
    return 0;
  const space::Axis &own = space_.axes(a.shape)[axis];
  return (own.isOrdered() ? std::abs(a.at[axis] - b.at[axis]) : 1) * stepOf(own.knob);
}

double Surrogate::covariance(const Point &a, const Point &b) const {
  const bool isSameShape = a.shape == b.shape;
  const std::size_t common = isSameShape ? a.at.size() : static_cast<std::size_t>(space_.planAxisCount());
  double distance = isSameShape ? 0 : kOtherShape, ofAxes = 0;
  for (std::size_t axis = 0; axis < common; ++axis) {
    const double own = distanceOn(axis, a, b);
    distance += own;
    ofAxes += std::exp(-own / kReach);
  }
  return kCommon * kCommon + kOfAxis * kOfAxis * ofAxes + kOwn * kOwn * std::exp(-distance / kReach);
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
  const double variance = covariance(point, point) - explained;
  return {mean, std::sqrt(std::max(variance, 0.0))};
}

} // namespace deft::search
