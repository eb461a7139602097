#include "tests/device/Words.h"

#include "deft/common/warp_rows.cuh"
#include "tests/device/DeviceConfig.h"

#include <gtest/gtest.h>

#include <random>

namespace deft {
namespace {

using test::runBlock;

/// Rows of head h and query position p: cap (h + 5) * ..., slope by head, and positions counted from the
/// query's.
template <bool kCapped, bool kOneCap, bool kSloped> struct FormedVariant : test::PlainVariant {
  struct Row {
    int head, qPos;
  };
  static constexpr bool kHasScore = true, kIsCapped = kCapped, kHasOneCap = kOneCap, kIsSloped = kSloped;

  static Row row(const Params &, int qPos, int head, int, int) { return {head, qPos}; }
  static ScoreForm form(const Params &, const Row &row, int) {
    const float cap = kOneCap ? 20.f : 5.f + static_cast<float>(row.head);
    return {cap, 1.f / cap, kSloped ? 0.01f * static_cast<float>(row.head + 1) : 0.f, row.qPos};
  }
  static double capped(const Row &row, double product) {
    const ScoreForm f = form({}, row, 0);
    const double s = product * kScale;
    return kCapped ? f.cap * std::tanh(f.rate * s) : s;
  }
  static double sloped(const Row &row, int kvPos) {
    const ScoreForm f = form({}, row, 0);
    return double{f.slope} * (kvPos - f.origin);
  }
  static float score(const Params &, const Row &row, float s, int kvPos, int, int) {
    return static_cast<float>(capped(row, s / kScale) + sloped(row, kvPos));
  }
};

template <int kDim> struct Config : test::DeviceConfig {
  static constexpr int kKeyDim = kDim, kValueDim = kDim;
};

constexpr int kTokens = 32;
constexpr float kProductsOf[] = {3.f, 60.f,
                                 900.f}; ///< scores that are near the cap's middle, at it, and far off

/// score() of random products, some tiles of small ones, some with a few that are far off.
template <class C, class Variant> void compareWithFormula(unsigned seed) {
  std::vector<int> queryPos(4), caller{0, 1, 2, 3};
  std::mt19937 random(seed);
  for (int &position : queryPos)
    position = static_cast<int>(random() % 2000);
  abi::AttendArgs args{};
  args.queryPos = queryPos.data();
  args.callerIndex = caller.data();
  abi::Item item{};
  item.queryCount = 4;
  std::vector<int> records(3 * kTokens);
  TokenRecords tokens(records.data(), kTokens);
  for (int t = 0; t < kTokens; ++t)
    tokens.position[t] = static_cast<int>(random() % 2000);
  const float size = kProductsOf[seed % 3];
  const typename Variant::Params params;
  ASSERT_EQ(
      runBlock(
          {.seed = seed},
          [&] {
            const int lane = static_cast<int>(threadIdx.x);
            WarpRows<C, Variant> rows(args, params, item, 1, 0);
            rows.loadQueryFacts();
            for (int group = 0; group < kTokens / 16; ++group) {
              Fragment<2> s{};
              s.forEach([&](float &x, int, int) {
                x = static_cast<float>(random() % 2001) / 1000.f * size - size;
              });
              const Fragment<2> products = s;
              rows.template score<1>(tokens, group, s);
              int i = 0;
              s.forEach([&](float &x, int r, int column) {
                const int row = rows.row(r), n = i / 4, c = i % 4;
                ++i;
                const int kvPos = tokens.position[group * 16 + fragmentColumn(lane) + column];
                const typename Variant::Row of{4 + row % 4, queryPos[static_cast<std::size_t>(row / 4)]};
                const double capped = Variant::capped(of, products.tile[n][c]);
                const double sloped = Variant::sloped(of, kvPos);
                const double got = rows.kFoldScale ? x * Variant::kScale : x;
                ASSERT_NEAR(got, capped + sloped, 1.2e-5 * std::abs(capped) + 5e-7 * std::abs(sloped) + 1e-6)
                    << row << " " << kvPos << " " << products.tile[n][c];
              });
            }
          }),
      "")
      << "seed " << seed;
}

TEST(FormedScoresTest, CappedScoresAreTheFormulaWhereverTheyLie) {
  for (unsigned seed = 1; seed <= 12; ++seed) {
    compareWithFormula<Config<64>, FormedVariant<true, true, false>>(seed);
    compareWithFormula<Config<64>, FormedVariant<true, false, false>>(seed);
    compareWithFormula<Config<256>, FormedVariant<true, false, false>>(seed);
  }
}

TEST(FormedScoresTest, SlopesCountFromEachRowsOrigin) {
  for (unsigned seed = 1; seed <= 12; ++seed) {
    compareWithFormula<Config<64>, FormedVariant<false, false, true>>(seed);
    compareWithFormula<Config<64>, FormedVariant<true, false, true>>(seed);
  }
}

/// Of a tile whose positions rise by one, what rows have in common comes apart.
TEST(FormedScoresTest, RisingTilesAreScoredByConstants) {
  using Variant = FormedVariant<false, false, true>;
  using C = Config<64>;
  static_assert(WarpRows<C, Variant>::kRises);
  std::vector<int> queryPos{100, 2000, 3, 70}, caller{0, 1, 2, 3};
  abi::AttendArgs args{};
  args.queryPos = queryPos.data();
  args.callerIndex = caller.data();
  abi::Item item{};
  item.queryCount = 4;
  std::vector<int> records(3 * 64);
  TokenRecords tokens(records.data(), 64);
  for (int t = 0; t < 64; ++t)
    tokens.position[t] = 500 + t;
  EXPECT_EQ(runBlock({},
                     [&] {
                       const int lane = static_cast<int>(threadIdx.x);
                       WarpRows<C, Variant> rows(args, {}, item, 0, 0);
                       rows.loadQueryFacts();
                       Fragment<8> rising, one;
                       rising.forEach([&](float &x, int r, int column) {
                         x = static_cast<float>(r * 5 + column - lane);
                       });
                       one = rising;
                       float common[2];
                       rows.scoreRising(tokens, rising, common);
                       rows.template score<4>(tokens, 0, one);
                       for (int n = 0; n < 8; ++n)
                         for (int c = 0; c < 4; ++c)
                           EXPECT_NEAR(rising.tile[n][c] + common[c / 2], one.tile[n][c],
                                       1e-5f * std::abs(one.tile[n][c]));
                     }),
            "");
}

} // namespace
} // namespace deft
