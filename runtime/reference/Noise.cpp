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
  const spec::Tensors &tensors = variant.tensors;
  // Weights are of v's dtype, and where that has 8 bits, of q's: their products are of 16 bits.
  const spec::DType weight = tensors.v.elementBytes() == 2 ? tensors.v.dtype : tensors.q.dtype;
  const spec::DType out = tensors.out.dtype;
  const bool areF16 = weight == spec::DType::F16 && out == spec::DType::F16;
  // Of e4m3, times 2^-8 (rule A12).
  Rounding ofWeight = tensors.byteProducts ? Rounding{0x1p-4, 0x1p-18} : roundingOf(weight);
  if (tensors.hasScales()) // the value that it multiplies may be rounded as well (rule A11)
    ofWeight.relative += roundingOf(tensors.q.dtype).relative;
  return {ofWeight, roundingOf(areF16 ? spec::DType::F16 : spec::DType::BF16), roundingOf(out)};
}

RowNoise::RowNoise(const spec::Variant &variant) : roundings_(Roundings::of(variant)) {}

void RowNoise::add(double weight, double valueNorm, const std::vector<double> &out, double scoreNoise) {
  const double product = weight * valueNorm, relative = roundings_.weight.relative + std::expm1(scoreNoise),
               moved = relative * product + roundings_.weight.absolute * valueNorm;
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
