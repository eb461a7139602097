#include "tests/device/Words.h"

#include "deft/sm90/run_window.cuh"
#include "tests/device/RandomItem.h"

#include <gtest/gtest.h>

namespace deft::sm90 {
namespace {

using test::draw;

/// All of an item's tokens, 32 at a time, with tiles left out as warps do that take tiles in turn.
TEST(RunWindowTest, EachLaneFindsItsToken) {
  for (unsigned seed = 1; seed <= 80; ++seed) {
    std::mt19937 random(seed);
    const test::TestItem made =
        test::randomItem(random, {.queries = draw(random, 1, 300),
                                  .runs = draw(random, 1, 150),
                                  .mostTokens = seed % 3 == 0 ? 1 : draw(random, 1, 200)});
    const std::vector<test::ItemToken> tokens = made.tokens();
    const int stride = draw(random, 1, 5), last = made.item.tokens - 1;
    ASSERT_EQ(test::runBlock({.seed = seed},
                             [&] {
                               const int lane = static_cast<int>(threadIdx.x);
                               RunWindow window(made.runs.data() + made.item.runBegin, made.item.runCount,
                                                lane);
                               for (int first = 0; first <= last; first += 32 * stride) {
                                 const Token token = window.find(first, last);
                                 const test::ItemToken &want =
                                     tokens[static_cast<std::size_t>(std::min(first + lane, last))];
                                 ASSERT_EQ(token.place, want.place) << first << " " << lane;
                                 ASSERT_EQ(token.position, want.position) << first << " " << lane;
                                 ASSERT_EQ(token.depth, want.depth) << first << " " << lane;
                                 ASSERT_EQ(token.visible, want.visible()) << first << " " << lane;
                               }
                             }),
              "")
        << "seed " << seed;
  }
}

/// Where a tile begins behind the item's end, all lanes have its last token.
TEST(RunWindowTest, BehindTheEndIsTheLastToken) {
  std::mt19937 random(1);
  const test::TestItem made = test::randomItem(random, {.queries = 3, .runs = 40, .mostTokens = 3});
  const test::ItemToken want = made.tokens().back();
  EXPECT_EQ(test::runBlock({},
                           [&] {
                             const int lane = static_cast<int>(threadIdx.x);
                             RunWindow window(made.runs.data() + made.item.runBegin, made.item.runCount,
                                              lane);
                             const int last = made.item.tokens - 1;
                             EXPECT_EQ(window.find(last + 1, last).place, want.place);
                             EXPECT_EQ(window.find(last + 500, last).visible, want.visible());
                           }),
            "");
}

/// However far the token is that the first reader is said of: the word may be negative on the way.
TEST(RunWindowTest, WhoSeesATokenOfASlopeIsRightFarIntoAnItem) {
  for (const int before : {0, 1, 100, 65535, 65536, 100'000, 1 << 29})
    for (const int end : {1, 2, 8, 300})
      for (int token = 0; token < end; ++token) {
        const unsigned seen = visibleAt(viewersOf(-before, end, true), before + token);
        ASSERT_EQ(seen, static_cast<unsigned>(end << 16 | token)) << before;
      }
  EXPECT_EQ(visibleAt(viewersOf(3, 8, false), 100'000), 8u << 16 | 3u);
}

} // namespace
} // namespace deft::sm90
