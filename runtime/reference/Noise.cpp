#include "runtime/reference/Noise.h"

#include <algorithm>
#include <cmath>

namespace deft::reference {

namespace {

/// Beginnings of a path that are looked at: a partial holds at least a tile.
constexpr int kTileTokens = 16;

double squaredNorm(const std::vector<double> &values) {
  double sum = 0;
  for (const double value : values)
    sum += value * value;
  return sum;
}

} // namespace

Rounding roundingOf(spec::DType dtype) {
  return dtype == spec::DType::BF16 ? Rounding{0x1p-8, 0x1p-134} : Rounding{0x1p-11, 0x1p-25};
}

Roundings Roundings::of(const spec::Variant &variant) {
  const spec::DType v = variant.tensors.v.dtype, out = variant.tensors.out.dtype; // weights are of v's
  const bool areF16 = v == spec::DType::F16 && out == spec::DType::F16;
  return {roundingOf(v), roundingOf(areF16 ? spec::DType::F16 : spec::DType::BF16), roundingOf(out)};
}

RowNoise::RowNoise(const spec::Variant &variant) : roundings_(Roundings::of(variant)) {}

void RowNoise::add(double weight, double valueNorm, const std::vector<double> &out) {
  const double product = weight * valueNorm,
               moved = roundings_.weight.relative * product + roundings_.weight.absolute * valueNorm;
  weights_ += moved * moved;
  products_ += product * product;
  if (++tokens_ % kTileTokens == 0)
    largest_ = std::max(largest_, squaredNorm(out));
}

double RowNoise::of(const std::vector<double> &out) const {
  const double norm = std::sqrt(squaredNorm(out));
  if (norm == 0)
    return 0;
  const double partials =
      roundings_.partial.relative * std::sqrt(std::max({products_, largest_, norm * norm}));
  const double output = roundings_.output.relative * norm +
                        roundings_.output.absolute * std::sqrt(static_cast<double>(out.size()));
  return std::sqrt(weights_ + partials * partials + output * output) / norm;
}

} // namespace deft::reference
