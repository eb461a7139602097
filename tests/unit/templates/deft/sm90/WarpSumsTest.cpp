#include "tests/device/Words.h"

#include "deft/sm90/warp_sums.cuh"
#include "tests/device/DeviceConfig.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace deft::sm90 {
namespace {

template <class E> struct Config : test::LightConfig {
  using Query = E;
  using Key = E;
  using Value = E;
};

/// Tiles of random scores that rise and fall, for the rows of a warp. Weights, sums and the factors by which
/// earlier ones were taken are those of a softmax over all of them, and no weight leaves the type's range.
template <class E> void weighAll(unsigned seed) {
  constexpr int kSteps = 6, kColumns = 64;
  using Sums = WarpSums<Config<E>, test::PlainVariant>;
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 30);
  std::vector<std::array<float, kSteps * kColumns>> scores(16);
  for (std::size_t row = 0; row < 16; ++row)
    for (std::size_t i = 0; i < kSteps * kColumns; ++i) {
      // Rows whose scores rise from tile to tile, and one that sees nothing at first.
      const float rise = static_cast<float>(i / kColumns) * static_cast<float>(row) * 20;
      scores[row][i] =
          (row == 3 && i < 2 * kColumns) || random() % 5 == 0 ? -kInfinity : normal(random) + rise;
    }
  EXPECT_EQ(test::runBlock(
                {.seed = seed},
                [&] {
                  const int lane = static_cast<int>(threadIdx.x);
                  Sums sums;
                  double kept[2] = {0, 0};
                  for (int step = 0; step < kSteps; ++step) {
                    Fragment<8> s{};
                    s.forEach([&](float &x, int r, int column) {
                      x = scores[static_cast<std::size_t>(fragmentRow(lane, r))]
                                [static_cast<std::size_t>(step * kColumns + fragmentColumn(lane) + column)];
                    });
                    float factor[2] = {1, 1};
                    if (!sums.weigh(s, {}, factor))
                      factor[0] = factor[1] = 1;
                    s.forEach([&](float x, int r, int) {
                      EXPECT_LE(x, std::exp2(kWeightBits<E> + 0.01f)) << fragmentRow(lane, r);
                    });
                    for (int r = 0; r < 2; ++r) {
                      kept[r] *= factor[r];
                      s.forEachOfRow(r, [&](float &x) { kept[r] += x; });
                    }
                  }
                  sums.finish();
                  for (int r = 0; r < 2; ++r) {
                    const int row = fragmentRow(lane, r);
                    double top = -1e30, sum = 0;
                    for (float s : scores[static_cast<std::size_t>(row)])
                      top = std::max(top, double{s});
                    for (float s : scores[static_cast<std::size_t>(row)])
                      sum += std::exp((double{s} - top) * test::PlainVariant::kScale);
                    EXPECT_NEAR(sums.lse(r), top * test::PlainVariant::kScale + std::log(sum), 2e-5) << row;
                    const float weights = sumOfRow(static_cast<float>(kept[r]));
                    EXPECT_NEAR(weights * sums.normalizer(r), 1.0, 1e-5) << row;
                  }
                }),
            "")
      << "seed " << seed;
}

TEST(WarpSumsTest, TilesAddUpToTheWholeRow) {
  for (unsigned seed = 1; seed <= 8; ++seed) {
    weighAll<f16>(seed);
    weighAll<bf16>(seed);
  }
}

/// Nobody sees anything: no weight, no number that is none.
TEST(WarpSumsTest, ARowWithoutKeysIsEmpty) {
  using Sums = WarpSums<Config<f16>, test::PlainVariant>;
  EXPECT_EQ(test::runBlock({},
                           [&] {
                             Sums sums;
                             Fragment<8> s{};
                             s.forEach([](float &x, int, int) { x = -kInfinity; });
                             float factor[2];
                             sums.weigh(s, {}, factor);
                             s.forEach([](float x, int, int) { EXPECT_EQ(x, 0.f); });
                             sums.finish();
                             EXPECT_EQ(sums.lse(0), -kInfinity);
                             EXPECT_EQ(sums.normalizer(1), 0.f);
                           }),
            "");
}

} // namespace
} // namespace deft::sm90
