#pragma once

#include "tuner/space/Space.h"

#include <vector>

namespace deft::search {

/// Learns the errors of the analytic model from measurements: a Gaussian process over the logarithm of
/// measured to predicted time. A candidate near a slower one than predicted is expected to be slower as well.
/// Far from all measured ones, only the common factor is known.
class Surrogate {
public:
  explicit Surrogate(const space::Space &space) : space_(space) {}

  struct Belief {
    double logUs = 0;     ///< mean
    double deviation = 0; ///< standard
  };

  /// Intermediate results about one point; they grow with the samples, so that asking again is cheap.
  struct Memory {
    std::vector<double> solved;
    double explained = 0;
    int generation = -1;
  };

  void clear();
  /// `predictedUs` is by the model. `predictedUs` and `measuredUs` may have any unit. Quadratic in the
  /// samples. Returns the sample's number.
  std::size_t add(const space::Point &point, double predictedUs, double measuredUs);
  /// Changes the time of a sample.
  void change(std::size_t sample, double predictedUs, double measuredUs);
  /// Updates the process after additions and changes; quadratic in the samples.
  void fit();
  /// Linear in the samples that are new to the memory, times the number of samples.
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
  std::vector<double> whitened_;              ///< residuals, multiplied by the inverse of the triangle
  int generation_ = 0;                        ///< of the triangle: clear() starts a new one
};

} // namespace deft::search
