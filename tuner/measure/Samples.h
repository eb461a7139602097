#pragma once

#include <vector>

/// Estimates that a few disturbed measurements do not change.
namespace deft::measure {

/// For an even count, the mean of the two middle values; 0 for none.
double median(std::vector<double> values);

/// The median and its error: a standard error from the median distance to it, which a minority of outliers
/// cannot raise.
struct Estimate {
  double value = 0;
  double error = 0;
  int count = 0;
};
Estimate estimate(const std::vector<double> &values);

/// Half the range between the quartiles, over the median.
double relativeSpread(std::vector<double> values);

} // namespace deft::measure
