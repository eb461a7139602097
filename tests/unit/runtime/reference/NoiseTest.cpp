#include "runtime/reference/Noise.h"

#include "runtime/exec/Half.h"
#include "tests/support/VariantBuilder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace deft::reference {
namespace {

using spec::DType;

TEST(NoiseTest, NoRoundingMovesMoreThanItsBound) {
  std::mt19937 random(1);
  for (const DType dtype : {DType::BF16, DType::F16}) {
    const Rounding rounding = roundingOf(dtype);
    double most = 0;
    for (int i = 0; i < 100'000; ++i) {
      const double value = std::ldexp(std::uniform_real_distribution<>(-1, 1)(random),
                                      std::uniform_int_distribution<>(-30, 8)(random));
      const double bound = rounding.relative * std::fabs(value) + rounding.absolute;
      most = std::max(most, std::fabs(exec::roundTo(value, dtype) - value) / bound);
    }
    EXPECT_LE(most, 1);
    EXPECT_GT(most, 0.9); // and none is less by much
  }
}

/// The output of random values and weights by a kernel that rounds what it must; its error over the noise.
double shareOfNoise(std::mt19937 &random, const spec::Variant &variant, int tokens, int partials) {
  std::normal_distribution<> normal;
  const auto dim = static_cast<std::size_t>(variant.tensors.v.dim);
  std::vector<double> exact(dim), rounded(dim), partial(dim);
  RowNoise noise(variant);
  double total = 0;
  std::vector<double> weights(static_cast<std::size_t>(tokens));
  for (double &weight : weights)
    total += weight = std::exp(normal(random));
  for (int t = 0; t < tokens; ++t) {
    const double weight = weights[static_cast<std::size_t>(t)] / total;
    double norm = 0;
    for (std::size_t d = 0; d < dim; ++d) {
      const double value = exec::roundTo(normal(random), variant.tensors.v.dtype);
      norm += value * value;
      exact[d] += weight * value;
      partial[d] += exec::roundTo(weight, variant.tensors.v.dtype) * value;
    }
    noise.add(weight, std::sqrt(norm), exact);
    if (t + 1 == tokens || (t + 1) % ((tokens + partials - 1) / partials) == 0)
      for (std::size_t d = 0; d < dim; ++d)
        rounded[d] += exec::roundTo(std::exchange(partial[d], 0), variant.tensors.v.dtype);
  }
  double distance = 0, norm = 0;
  for (std::size_t d = 0; d < dim; ++d) {
    const double off = exec::roundTo(rounded[d], variant.tensors.out.dtype) - exact[d];
    distance += off * off;
    norm += exact[d] * exact[d];
  }
  return std::sqrt(distance / norm) / noise.of(exact);
}

TEST(NoiseTest, IsAboutWhatRoundingsComeTo) {
  std::mt19937 random(2);
  for (const DType dtype : {DType::BF16, DType::F16})
    for (const int tokens : {1, 3, 40, 1000})
      for (const int partials : {1, 4}) {
        test::VariantBuilder builder(1, 1, 64);
        builder.variant.tensors = spec::Tensors::alike(builder.variant.tensors.k.dim, dtype);
        double most = 0, sum = 0;
        constexpr int kRows = 60;
        for (int i = 0; i < kRows; ++i) {
          const double share = shareOfNoise(random, builder.variant, tokens, partials);
          most = std::max(most, share);
          sum += share;
        }
        SCOPED_TRACE(std::to_string(tokens) + " tokens, " + std::to_string(partials) + " partials");
        EXPECT_LE(most, 1);
        // One value that is rounded already is exact.
        EXPECT_GE(sum / kRows, tokens > 1 ? 0.3 : 0);
      }
}

TEST(NoiseTest, ARowOfZerosHasNone) {
  test::VariantBuilder builder(1, 1, 16);
  EXPECT_EQ(RowNoise(builder.variant).of(std::vector<double>(16, 0.0)), 0);
}

} // namespace
} // namespace deft::reference
