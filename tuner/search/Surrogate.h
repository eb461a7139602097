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

  /// What a belief about one point rests on; grows with the samples, so that asking again is cheap.
  struct Memory {
    std::vector<double> solved;
    double explained = 0;
    int generation = -1;
  };

  void clear();
  /// `predictedUs` by the model; `measuredUs` likewise in any unit. Quadratic in the samples. Returns the
  /// sample's number.
  std::size_t add(const space::Point &point, double predictedUs, double measuredUs);
  /// The sample's time is another.
  void change(std::size_t sample, double predictedUs, double measuredUs);
  /// Takes in what was added and changed; quadratic in the samples.
  void fit();
  /// Linear in the samples that are new to the memory, times their number.
  Belief believe(const space::Point &point, double predictedUs, Memory &memory) const;
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
  std::vector<std::vector<double>> cholesky_; ///< lower triangle of the samples' covariance
  std::vector<double> whitened_;              ///< residuals, by the triangle's inverse
  int generation_ = 0;                        ///< of the triangle: clear() begins another
};

} // namespace deft::search
