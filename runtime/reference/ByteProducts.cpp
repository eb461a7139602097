#include "runtime/reference/ByteProducts.h"

#include "runtime/exec/Fp8.h"

#include <algorithm>
#include <cmath>

namespace deft::reference {

namespace {

double rounded(double value) {
  return exec::floatFromE4m3(exec::fp8FromFloat(static_cast<float>(value), exec::kE4m3));
}

} // namespace

double byteScaleOf(const std::vector<double> &row) {
  double largest = 0, scale = 0x1p-126;
  for (const double element : row)
    largest = std::max(largest, std::fabs(element));
  while (scale * exec::kE4m3.largestValue < largest)
    scale *= 2;
  return scale;
}

double asByte(double element, double scale) { return scale * rounded(element / scale); }

double asByteWeight(double weight) { return 0x1p-8 * rounded(0x1p8 * weight); }

double byteSumNoise(const std::vector<double> &q, const float *k) {
  double largest = 0, sum = 0;
  for (std::size_t d = 0; d < q.size(); ++d) {
    largest = std::max(largest, std::fabs(q[d] * k[d]));
    sum += q[d] * k[d];
  }
  return 0x1p-12 * std::max(largest, std::fabs(sum)) * std::sqrt(static_cast<double>(q.size()));
}

} // namespace deft::reference
