#include "runtime/reference/Elements.h"

#include "runtime/exec/Half.h"
#include "runtime/reference/Noise.h"

#include <algorithm>
#include <cmath>

namespace deft::reference {

namespace {

double normOf(const std::vector<double> &row) {
  double sum = 0;
  for (const double value : row)
    sum += value * value;
  return std::sqrt(sum);
}

} // namespace

std::vector<double> Elements::query(std::vector<double> row, Site site) {
  if (!variant_.query)
    return row;
  const auto size = row.size();
  site.xRms = evaluate_.round(normOf(row) / std::sqrt(static_cast<double>(size)));
  std::vector<double> made(size);
  for (std::size_t d = 0; d < size; ++d) {
    site.x = row[d];
    site.xHalf = row[(d + size / 2) % size];
    site.xPair = row[d ^ 1];
    site.dim = static_cast<int>(d);
    made[d] = exec::roundTo(evaluate_.f32(*variant_.query, site), variant_.tensors.q.dtype);
  }
  return made;
}

double Elements::output(double x, int dim, Site site) {
  if (!variant_.output)
    return x;
  site.x = x;
  site.dim = dim;
  return evaluate_.f32(*variant_.output, site);
}

std::vector<double> Elements::output(const std::vector<double> &row, const Site &site, double &noise) {
  if (!variant_.output)
    return row;
  // Roundings of weights move all columns alike, those of partials each by a part of itself.
  const double norm = normOf(row), evenly = norm / std::sqrt(static_cast<double>(row.size()));
  std::vector<double> made(row.size());
  double moved = 0; // squared
  const Rounding rounding = roundingOf(variant_.tensors.out.dtype);
  for (std::size_t d = 0; d < row.size(); ++d) {
    const int dim = static_cast<int>(d);
    made[d] = output(row[d], dim, site);
    const double step = noise * std::max(evenly, std::fabs(row[d]));
    const double most = std::max(std::fabs(output(row[d] + step, dim, site) - made[d]),
                                 std::fabs(output(row[d] - step, dim, site) - made[d]));
    const double own = rounding.relative * std::fabs(made[d]) + rounding.absolute;
    moved += most * most + own * own;
  }
  const double madeNorm = normOf(made);
  noise = madeNorm > 0 ? std::sqrt(moved) / madeNorm : 0;
  return made;
}

} // namespace deft::reference
