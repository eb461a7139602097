#include "tests/device/Words.h"

#include "deft/sm90/turns.cuh"

#include <gtest/gtest.h>

#include <string>

namespace deft::sm90 {
namespace {

/// Warpgroups with so many tiles each start one after the other, tile by tile, over several units.
template <int kGroups> void startAll(const std::string &expected) {
  for (unsigned seed = 0; seed <= 5; ++seed) {
    std::string starts;
    EXPECT_EQ(test::runBlock({.threads = 128 * kGroups, .seed = seed},
                             [&] {
                               const int group = static_cast<int>(threadIdx.x / 128);
                               for (int tiles : {1, 4, 2}) {
                                 Turns<kGroups> turns(true, group, tiles);
                                 for (int tile = 0; tile < tiles; ++tile) {
                                   turns.begin();
                                   if (threadIdx.x % 128 == 0)
                                     starts += static_cast<char>('a' + group);
                                   __syncwarp();
                                   turns.end();
                                 }
                               }
                             }),
              "");
    EXPECT_EQ(starts, expected) << seed;
  }
}
TEST(TurnsTest, WarpgroupsStartOneAfterTheOther) {
  startAll<2>("ababababababab");
  startAll<3>("abcabcabcabcabcabcabc");
}

TEST(TurnsTest, NobodyWaitsWhereTheyAreNotTaken) {
  EXPECT_EQ(test::runBlock({.threads = 128},
                           [] {
                             Turns<2> turns(false, 0, 2);
                             turns.begin();
                             turns.end();
                             turns.begin();
                           }),
            "");
}

} // namespace
} // namespace deft::sm90
