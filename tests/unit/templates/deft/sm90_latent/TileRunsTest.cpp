#include "tests/device/Words.h"

#include "deft/sm90_latent/tile_runs.cuh"
#include "tests/device/RandomItem.h"

#include <gtest/gtest.h>

namespace deft::sm90_latent {
namespace {

using test::draw;

/// All of an item's tokens, 64 at a time, of long runs that hold whole tiles and of short ones that do not,
/// with tiles left out; the last token again where a tile passes the item's end.
TEST(TileRunsTest, EachLaneFindsItsTokens) {
  for (unsigned seed = 1; seed <= 80; ++seed) {
    std::mt19937 random(seed);
    const test::TestItem made =
        test::randomItem(random, {.queries = draw(random, 1, 60),
                                  .runs = draw(random, 1, seed % 2 == 0 ? 4 : 150),
                                  .mostTokens = seed % 3 == 0 ? 1 : draw(random, 1, 900)});
    const std::vector<test::ItemToken> tokens = made.tokens();
    const int stride = draw(random, 1, 3), last = made.item.tokens - 1;
    ASSERT_EQ(
        test::runBlock({.seed = seed},
                       [&] {
                         const int lane = static_cast<int>(threadIdx.x);
                         TileRuns runs(made.runs.data() + made.item.runBegin, made.item.runCount, lane);
                         for (int first = 0; first <= last; first += 64 * stride) {
                           sm90::Token token[2];
                           runs.find(first, last, token);
                           for (int half = 0; half < 2; ++half) {
                             const test::ItemToken &want =
                                 tokens[static_cast<std::size_t>(std::min(first + half * 32 + lane, last))];
                             ASSERT_EQ(token[half].place, want.place) << first << " " << lane;
                             ASSERT_EQ(token[half].position, want.position) << first << " " << lane;
                             ASSERT_EQ(token[half].depth, want.depth) << first << " " << lane;
                             ASSERT_EQ(token[half].visible, want.visible()) << first << " " << lane;
                           }
                         }
                       }),
        "")
        << "seed " << seed;
  }
}

} // namespace
} // namespace deft::sm90_latent
