#include "tuner/search/Surrogate.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace deft::search {

using space::Knob;
using space::Point;

namespace {

// Standard deviations of the logarithm of time. The model's common factor: e; its error for one value of one
// axis, in all combinations: a fifth; its error for a single candidate: a quarter; a measurement: one in a
// hundred.
constexpr double kCommon = 1, kOfAxis = 0.2, kOwn = 0.25, kNoise = 0.01;
/// Distance at which knowledge about one point tells little about another.
constexpr double kReach = 1.5;

/// The distance of one step along an axis; or of any other value if the axis is not ordered.
double stepOf(Knob knob) {
  switch (knob) {
  case Knob::Partition:
    return 1;
  case Knob::Cost:
    return 0.4;
  case Knob::Chunk:
  case Knob::Order:
    return 0.25;
  case Knob::TileQ:
    return 0.5;
  default:
    return 0.3;
  }
}
constexpr double kOtherShape = 1.5;

} // namespace

/// The distance along one axis.
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

void Surrogate::clear() {
  samples_.clear();
  cholesky_.clear();
  whitened_.clear();
  ++generation_;
}

std::size_t Surrogate::add(const Point &point, double predictedUs, double measuredUs) {
  std::vector<double> row;
  double own = covariance(point, point) + kNoise * kNoise;
  for (std::size_t j = 0; j < samples_.size(); ++j) {
    double sum = covariance(samples_[j].point, point);
    for (std::size_t k = 0; k < j; ++k)
      sum -= row[k] * cholesky_[j][k];
    row.push_back(sum / cholesky_[j][j]);
    own -= row.back() * row.back();
  }
  row.push_back(std::sqrt(std::max(own, 1e-12)));
  cholesky_.push_back(std::move(row));
  samples_.push_back({point, 0});
  change(samples_.size() - 1, predictedUs, measuredUs);
  return samples_.size() - 1;
}

void Surrogate::change(std::size_t sample, double predictedUs, double measuredUs) {
  samples_[sample].residual = std::log(measuredUs) - std::log(predictedUs);
}

void Surrogate::fit() {
  whitened_.clear();
  for (std::size_t i = 0; i < samples_.size(); ++i) {
    double sum = samples_[i].residual;
    for (std::size_t k = 0; k < i; ++k)
      sum -= cholesky_[i][k] * whitened_[k];
    whitened_.push_back(sum / cholesky_[i][i]);
  }
}

Surrogate::Belief Surrogate::believe(const Point &point, double predictedUs, Memory &memory) const {
  if (memory.generation != generation_)
    memory = {{}, 0, generation_};
  std::vector<double> &solved = memory.solved;
  for (std::size_t i = solved.size(); i < whitened_.size(); ++i) {
    double sum = covariance(samples_[i].point, point);
    for (std::size_t k = 0; k < i; ++k)
      sum -= cholesky_[i][k] * solved[k];
    solved.push_back(sum / cholesky_[i][i]);
    memory.explained += solved.back() * solved.back();
  }
  double mean = std::log(predictedUs);
  for (std::size_t i = 0; i < whitened_.size(); ++i)
    mean += solved[i] * whitened_[i];
  const double variance = covariance(point, point) - memory.explained;
  return {mean, std::sqrt(std::max(variance, 0.0))};
}

Surrogate::Belief Surrogate::believe(const Point &point, double predictedUs) const {
  Memory memory;
  return believe(point, predictedUs, memory);
}

} // namespace deft::search
