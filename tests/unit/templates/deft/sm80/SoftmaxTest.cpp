#include "tests/device/Words.h"

#include "deft/sm80/softmax.cuh"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace deft::sm80 {
namespace {

/// Tiles of random scores, some hidden, for the rows of a warp: sums and maxima against those of all scores
/// together.
TEST(SoftmaxTest, TilesAddUpToTheWholeRow) {
  constexpr int kTiles = 2, kSteps = 5, kColumns = 8 * kTiles;
  for (unsigned seed = 1; seed <= 10; ++seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0, 6);
    std::vector<std::array<float, kSteps * kColumns>> scores(16);
    for (std::size_t row = 0; row < 16; ++row)
      for (float &s : scores[row]) // the first row sees nothing, others not everything
        s = row == 0 || random() % 3 == 0 ? -kInfinity : normal(random);
    const float unit = seed % 2 == 0 ? kLog2e : 0.125f * kLog2e;
    EXPECT_EQ(test::runBlock(
                  {.seed = seed},
                  [&] {
                    const int lane = static_cast<int>(threadIdx.x);
                    OnlineSoftmax softmax(unit);
                    float kept[2] = {0, 0}; // of this thread's weights, rescaled as an accumulator is
                    for (int step = 0; step < kSteps; ++step) {
                      Fragment<kTiles> s{};
                      s.forEach([&](float &x, int r, int column) {
                        x = scores[static_cast<std::size_t>(fragmentRow(lane, r))]
                                  [static_cast<std::size_t>(step * kColumns + fragmentColumn(lane) + column)];
                      });
                      float rescale[2];
                      softmax.step(s, rescale);
                      for (int r = 0; r < 2; ++r) {
                        kept[r] *= rescale[r];
                        s.forEachOfRow(r, [&](float &x) { kept[r] += x; });
                      }
                    }
                    softmax.finish();
                    for (int r = 0; r < 2; ++r) {
                      const int row = fragmentRow(lane, r);
                      float top = -kInfinity;
                      double sum = 0;
                      for (float s : scores[static_cast<std::size_t>(row)])
                        top = std::max(top, s);
                      for (float s : scores[static_cast<std::size_t>(row)])
                        sum += row == 0 ? 0 : std::exp2((double{s} - top) * unit);
                      EXPECT_EQ(softmax.maximum[r], top) << row;
                      EXPECT_NEAR(softmax.sum[r], sum, 5e-6 * sum) << row;
                      EXPECT_NEAR(sumOfRow(kept[r]), softmax.sum[r], 5e-6 * sum) << row;
                    }
                  }),
              "");
  }
}

} // namespace
} // namespace deft::sm80
