#include "tests/device/Words.h"

#include "deft/sm90/dealt_runs.cuh"
#include "tests/device/DeviceConfig.h"
#include "tests/device/RandomItem.h"

#include <gtest/gtest.h>

namespace deft::sm90 {
namespace {

using test::draw;
using test::ItemToken;

struct Config : test::LightConfig {
  static constexpr int kKeyDim = 128, kValueDim = 128;
  static constexpr bool kIsDealt = true;
};
static_assert(kReadsDealt<Config>);

void expectToken(const Token &token, const std::vector<ItemToken> &tokens, int at, bool hasPositions) {
  if (at >= static_cast<int>(tokens.size())) {
    EXPECT_EQ(token.visible, kNobody) << at;
    if (!tokens.empty()) {
      EXPECT_EQ(token.place, tokens.back().place) << at;
    }
    return;
  }
  const ItemToken &want = tokens[static_cast<std::size_t>(at)];
  EXPECT_EQ(token.place, want.place) << at;
  EXPECT_EQ(token.visible, want.visible()) << at;
  if (hasPositions) {
    EXPECT_EQ(token.position, want.position) << at;
    EXPECT_EQ(token.depth, want.depth) << at;
  }
}

/// Reads all tiles of an item with some left out, as a team that takes tiles in turn. Every common token is
/// in its place of the common tiles, every dealt one in its warp's group of the dealt tiles, and both kinds
/// take turns.
template <class Variant> void readAll(const test::DealtItem &dealt, std::mt19937 &random, unsigned seed) {
  const abi::Item &item = dealt.item;
  const int tiles = tilesOf<Config>(item), every = draw(random, 1, 3);
  ASSERT_EQ(tiles, (static_cast<int>(dealt.common.size()) + 63) / 64 + item.dealtTiles);
  typename DealtRuns<Config, Variant>::Window window;
  constexpr bool kHasPosition = kHasPositions<Config, Variant>;
  ASSERT_EQ(test::runBlock({.seed = seed},
                           [&] {
                             const int lane = static_cast<int>(threadIdx.x);
                             DealtRuns<Config, Variant> runs(dealt.runs.data() + item.runBegin, item, window,
                                                             lane);
                             int dealtBefore = 0;
                             for (int tile = 0; tile < tiles; ++tile) {
                               // Turns: of so many tiles so many are dealt, to within one.
                               const double share = static_cast<double>(item.dealtTiles) * tile / tiles;
                               EXPECT_LE(std::abs(dealtBefore - share), 1.0) << tile;
                               const int dealtAfter = static_cast<int>((tile + 1u) * window.share >> 16);
                               const bool isNext = dealtAfter > dealtBefore;
                               if (tile % every == 0) {
                                 Token token[2];
                                 ASSERT_EQ(runs.find(tile, token), isNext);
                                 for (int half = 0; half < 2; ++half) {
                                   const int in = half * 32 + lane;
                                   if (isNext)
                                     expectToken(token[half], dealt.ofWarp[in / 16],
                                                 dealtBefore * 16 + in % 16, kHasPosition);
                                   else
                                     expectToken(token[half], dealt.common, (tile - dealtBefore) * 64 + in,
                                                 kHasPosition);
                                 }
                               }
                               dealtBefore = dealtAfter;
                             }
                             EXPECT_EQ(dealtBefore, item.dealtTiles);
                           }),
            "")
      << "seed " << seed;
}

TEST(DealtRunsTest, EveryTokenIsInItsPlace) {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    std::mt19937 random(seed);
    const test::DealtItem dealt = test::randomDealtItem(random, 1 << 20, seed % 4 == 0 ? 90 : 12);
    readAll<test::PlainVariant>(dealt, random, seed);
    readAll<test::WindowVariant>(dealt, random, seed);
  }
}

TEST(DealtRunsTest, ItemsThatAreNotDealtAreReadInTheirOrder) {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    std::mt19937 random(seed);
    test::DealtItem all;
    static_cast<test::TestItem &>(all) =
        test::randomItem(random, {.queries = 16, .runs = draw(random, 1, 90), .mostTokens = 70});
    all.common = all.tokens();
    readAll<test::WindowVariant>(all, random, seed);
  }
}

} // namespace
} // namespace deft::sm90
