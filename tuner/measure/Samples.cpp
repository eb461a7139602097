#include "tuner/measure/Samples.h"

#include <algorithm>
#include <cmath>

namespace deft::measure {
namespace {

/// The value at a share of the sorted values, interpolated linearly.
double quantile(const std::vector<double> &sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

} // namespace

double median(std::vector<double> values) {
  if (values.empty())
    return 0;
  std::sort(values.begin(), values.end());
  return quantile(values, 0.5);
}

Estimate estimate(const std::vector<double> &values) {
  // For normal values, the median distance is 1 / 1.4826 deviations, and a median's deviation is 1.2533 times
  // a mean's.
  constexpr double kDeviation = 1.4826, kOfMedian = 1.2533;
  Estimate result{median(values), 0, static_cast<int>(values.size())};
  std::vector<double> distances;
  distances.reserve(values.size());
  for (const double value : values)
    distances.push_back(std::abs(value - result.value));
  if (!values.empty())
    result.error = kOfMedian * kDeviation * median(distances) / std::sqrt(static_cast<double>(values.size()));
  return result;
}

double relativeSpread(std::vector<double> values) {
  if (values.empty())
    return 0;
  std::sort(values.begin(), values.end());
  const double middle = quantile(values, 0.5);
  return middle > 0 ? 0.5 * (quantile(values, 0.75) - quantile(values, 0.25)) / middle : 0;
}

} // namespace deft::measure
