#pragma once

#include "tuner/space/Space.h"

#include <vector>

namespace deft::search {

/// What the analytic model gets wrong, learnt from what was measured: a Gaussian process over the logarithm
/// of measured time to predicted time. A candidate near one that was slower than predicted is believed to be
/// slower, too; far from all that were measured only the common factor is known.
class Surrogate {
public:
  explicit Surrogate(const space::Space &space) : space_(space) {}

  struct Belief {
    double logUs = 0;     ///< mean
    double deviation = 0; ///< standard
  };

  void clear() { samples_.clear(); }
  /// `predictedUs` by the model; `measuredUs` likewise in any unit.
  void add(const space::Point &point, double predictedUs, double measuredUs);
  /// Takes in what was added; cubic in the samples.
  void fit();
  Belief believe(const space::Point &point, double predictedUs) const;

private:
  struct Sample {
    space::Point point;
    double residual = 0;
  };
  double distanceOn(std::size_t axis, const space::Point &a, const space::Point &b) const;
  double covariance(const space::Point &a, const space::Point &b) const;

  const space::Space &space_;
  std::vector<Sample> samples_;
  std::vector<double> cholesky_; ///< lower triangle of the samples' covariance, row by row
  std::vector<double> weights_;  ///< inverse covariance times residuals
};

} // namespace deft::search
