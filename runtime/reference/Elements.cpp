#include "runtime/reference/Elements.h"

#include "runtime/exec/Half.h"
#include "runtime/reference/ByteProducts.h"
#include "runtime/reference/Noise.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace deft::reference {

namespace {

/// Of the f32 arithmetic of `query` and `key`, relative to the row's largest element and the made one's: at
/// least so much, and some times what f32 is off by here, which grows with angles.
constexpr double kElementRounding = 0x1p-16, kTimesOff = 4;

double largestOf(const std::vector<double> &row) {
  double largest = 0;
  for (const double value : row)
    largest = std::max(largest, std::fabs(value));
  return largest;
}

double normOf(const std::vector<double> &row) {
  double sum = 0;
  for (const double value : row)
    sum += value * value;
  return std::sqrt(sum);
}

} // namespace

std::vector<double> Elements::query(std::vector<double> row, Site site, std::vector<EitherWay> *eitherWay) {
  std::vector<double> made = variant_.query ? make(*variant_.query, row, site, eitherWay) : std::move(row);
  if (!variant_.tensors.byteProducts)
    return made;
  const double scale = byteScaleOf(made);
  for (double &element : made)
    element = asByte(element, scale);
  if (!eitherWay)
    return made;
  for (auto &[dim, other] : *eitherWay)
    other = asByte(other, scale);
  std::erase_if(*eitherWay, [&](const EitherWay &one) { return one.other == made[one.dim]; });
  return made;
}

std::vector<double> Elements::key(std::vector<double> row, Site site, std::vector<EitherWay> *eitherWay) {
  return variant_.key ? make(*variant_.key, row, site, eitherWay) : std::move(row);
}

std::vector<double> Elements::make(spec::ExprId hook, const std::vector<double> &row, Site site,
                                   std::vector<EitherWay> *eitherWay) {
  const auto size = row.size();
  site.xRms = evaluate_.round(normOf(row) / std::sqrt(static_cast<double>(size)));
  std::vector<double> exact(size), made(size);
  const auto rounded = [&](double value) { return exec::roundTo(value, variant_.tensors.q.dtype); };
  const double largest = largestOf(row);
  double off = 0; // of f32 arithmetic, of any element of the row
  for (std::size_t d = 0; d < size; ++d) {
    site.x = row[d];
    site.xHalf = row[(d + size / 2) % size];
    site.xPair = row[d ^ 1];
    site.dim = static_cast<int>(d);
    exact[d] = evaluate_.f32(hook, site);
    made[d] = rounded(exact[d]);
    if (eitherWay)
      off = std::max({off, kElementRounding * std::max(largest, std::fabs(exact[d])),
                      kTimesOff * std::fabs(single_.f32(hook, site) - exact[d])});
  }
  if (eitherWay)
    for (std::size_t d = 0; d < size; ++d)
      for (const double other : {rounded(exact[d] - off), rounded(exact[d] + off)})
        if (std::fabs(other - made[d]) > 2 * off) // nearer ones move nothing that shows
          eitherWay->push_back({d, other});
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
