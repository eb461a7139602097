#include "tuner/calibrate/FitPrices.h"

#include "tuner/measure/Samples.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace deft::calibrate {

using config::CostCoefficients;
using config::PriceName;

namespace {

using Vector = std::vector<double>;
using Matrix = std::vector<Vector>; ///< rows

/// A price may well differ by a factor of three between machines.
const double kPriorWidth = std::log(3.0);
/// No model with so few numbers is more exact.
constexpr double kLeastNoise = 0.03;
const double kMostMove = std::log(20.0);

/// For a symmetric positive definite matrix with about a dozen rows: Gauss-Jordan.
Matrix inverse(Matrix a) {
  const std::size_t n = a.size();
  Matrix result(n, Vector(n, 0));
  for (std::size_t i = 0; i < n; ++i)
    result[i][i] = 1;
  for (std::size_t pivot = 0; pivot < n; ++pivot) {
    const double scale = a[pivot][pivot];
    for (std::size_t j = 0; j < n; ++j) {
      a[pivot][j] /= scale;
      result[pivot][j] /= scale;
    }
    for (std::size_t i = 0; i < n; ++i) {
      const double factor = a[i][pivot];
      if (i == pivot || factor == 0)
        continue;
      for (std::size_t j = 0; j < n; ++j) {
        a[i][j] -= factor * a[pivot][j];
        result[i][j] -= factor * result[pivot][j];
      }
    }
  }
  return result;
}

class Fit {
public:
  Fit(const std::vector<Observation> &observations, const CostCoefficients &start,
      std::vector<PriceName> names)
      : observations_(observations), start_(start), names_(std::move(names)), moves_(names_.size(), 0) {}

  void solve() {
    constexpr int kRounds = 6, kSteps = 12;
    for (int round = 0; round < kRounds; ++round) { // the noise depends on the residuals, and vice versa
      Vector left = residuals(moves_);
      for (double &one : left)
        one = std::abs(one);
      constexpr double kOfMedian = 1.4826; // a normal distribution's width over its median distance
      noise_ = std::max(kLeastNoise, kOfMedian * measure::median(left));
      double damping = 1e-3;
      for (int step = 0; step < kSteps && damping < 1e6; ++step)
        damping *= tryStep(damping) ? 0.3 : 10;
    }
  }

  CostCoefficients at(const Vector &moves) const {
    CostCoefficients cost = start_;
    for (std::size_t j = 0; j < names_.size(); ++j)
      cost.*names_[j].member *= std::exp(moves[j]);
    return cost;
  }
  const std::vector<PriceName> &names() const { return names_; }
  const Vector &moves() const { return moves_; }

  /// For each price, its uncertainty after over before.
  Vector widths() const {
    const Matrix covariance = inverse(curvature(jacobian(), residuals(moves_)));
    Vector widths;
    for (std::size_t j = 0; j < names_.size(); ++j)
      widths.push_back(std::sqrt(covariance[j][j]) / kPriorWidth);
    return widths;
  }

private:
  Vector residuals(const Vector &moves) const {
    const CostCoefficients cost = at(moves);
    Vector all;
    for (const Observation &one : observations_)
      all.push_back(std::log(one.price(cost) / one.us));
    return all;
  }

  /// Beyond two widths, an observation counts linearly, not quadratically.
  double weightOf(double residual) const {
    const double distance = std::abs(residual) / (2 * noise_);
    return distance <= 1 ? 1 : 1 / distance;
  }

  double loss(const Vector &moves) const {
    double sum = 0;
    for (const double residual : residuals(moves)) {
      const double distance = std::abs(residual) / (2 * noise_);
      sum += 4 * (distance <= 1 ? distance * distance : 2 * distance - 1);
    }
    for (const double move : moves)
      sum += move * move / (kPriorWidth * kPriorWidth);
    return sum;
  }

  /// A row for each observation.
  Matrix jacobian() const {
    constexpr double kStep = 1e-3;
    Matrix rows(observations_.size(), Vector(names_.size()));
    for (std::size_t j = 0; j < names_.size(); ++j) {
      Vector up = moves_, down = moves_;
      up[j] += kStep;
      down[j] -= kStep;
      const Vector above = residuals(up), below = residuals(down);
      for (std::size_t i = 0; i < rows.size(); ++i)
        rows[i][j] = (above[i] - below[i]) / (2 * kStep);
    }
    return rows;
  }

  Matrix curvature(const Matrix &jacobian, const Vector &residuals) const {
    const std::size_t n = names_.size();
    Matrix sum(n, Vector(n, 0));
    for (std::size_t i = 0; i < residuals.size(); ++i) {
      const double weight = weightOf(residuals[i]) / (noise_ * noise_);
      for (std::size_t j = 0; j < n; ++j)
        for (std::size_t k = 0; k < n; ++k)
          sum[j][k] += weight * jacobian[i][j] * jacobian[i][k];
    }
    for (std::size_t j = 0; j < n; ++j)
      sum[j][j] += 1 / (kPriorWidth * kPriorWidth);
    return sum;
  }

  /// One step of Levenberg-Marquardt.
  bool tryStep(double damping) {
    const Vector left = residuals(moves_);
    const Matrix slopes = jacobian();
    Matrix matrix = curvature(slopes, left);
    Vector gradient(names_.size(), 0);
    for (std::size_t i = 0; i < left.size(); ++i)
      for (std::size_t j = 0; j < names_.size(); ++j)
        gradient[j] += weightOf(left[i]) / (noise_ * noise_) * slopes[i][j] * left[i];
    for (std::size_t j = 0; j < names_.size(); ++j) {
      gradient[j] += moves_[j] / (kPriorWidth * kPriorWidth);
      matrix[j][j] *= 1 + damping;
    }
    const Matrix inverted = inverse(std::move(matrix));
    Vector tried = moves_;
    for (std::size_t j = 0; j < names_.size(); ++j) {
      for (std::size_t k = 0; k < names_.size(); ++k)
        tried[j] -= inverted[j][k] * gradient[k];
      tried[j] = std::clamp(tried[j], -kMostMove, kMostMove);
    }
    if (!(loss(tried) < loss(moves_)))
      return false;
    moves_ = std::move(tried);
    return true;
  }

  const std::vector<Observation> &observations_;
  CostCoefficients start_;
  std::vector<PriceName> names_;
  Vector moves_; ///< logarithms of factors
  double noise_ = kLeastNoise;
};

} // namespace

PriceFit fitPrices(const std::vector<Observation> &observations, const CostCoefficients &start,
                   std::span<const PriceName> fitted) {
  std::vector<PriceName> names;
  for (const PriceName &name : fitted)
    if (start.*name.member > 0)
      names.push_back(name);
  Fit all(observations, start, names);
  all.solve();
  const Vector widths = all.widths();
  // Once more, only with prices that the probes determine: the others must not move because of noise.
  constexpr double kDecidedWidth = 0.5;
  std::vector<PriceName> decided;
  for (std::size_t j = 0; j < names.size(); ++j)
    if (widths[j] < kDecidedWidth)
      decided.push_back(names[j]);
  Fit last(observations, start, decided);
  last.solve();
  PriceFit fit{{}, last.at(last.moves())};
  for (std::size_t j = 0; j < names.size(); ++j)
    fit.prices.push_back(
        {names[j], fit.after.*names[j].member / start.*names[j].member, widths[j] < kDecidedWidth});
  return fit;
}

void moveChunkPrices(PriceFit &fit, double token) {
  using Member = double CostCoefficients::*;
  struct Follower {
    Member price, of; ///< null: a token's
  };
  constexpr Follower kFollowers[] = {{&CostCoefficients::chunkTokenUs, nullptr},
                                     {&CostCoefficients::latentTokenUs, nullptr},
                                     {&CostCoefficients::chunkItemUs, &CostCoefficients::itemUs},
                                     {&CostCoefficients::latentItemUs, &CostCoefficients::itemUs},
                                     {&CostCoefficients::chunkMergeUs, &CostCoefficients::mergeUs},
                                     {&CostCoefficients::chunkPartialGBs, &CostCoefficients::partialGBs}};
  const auto find = [&](Member member) {
    return std::find_if(fit.prices.begin(), fit.prices.end(),
                        [&](const FittedPrice &price) { return price.name.member == member; });
  };
  for (const Follower &follower : kFollowers) {
    const auto price = find(follower.price);
    if (price == fit.prices.end())
      continue;
    if (!follower.of) {
      price->factor = token;
      price->isDecided = token != 1;
    } else if (const auto of = find(follower.of); of != fit.prices.end()) {
      price->factor = of->factor;
      price->isDecided = of->isDecided;
    }
    fit.after.*follower.price *= price->factor;
  }
}

CostCoefficients movedAlike(CostCoefficients cost, const PriceFit &fit) {
  for (const FittedPrice &price : fit.prices)
    cost.*price.name.member *= price.factor;
  return cost;
}

} // namespace deft::calibrate
