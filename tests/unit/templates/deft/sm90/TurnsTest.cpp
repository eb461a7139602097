#include "tests/device/Words.h"

#include "deft/sm90/turns.cuh"

#include <gtest/gtest.h>

#include <string>

namespace deft::sm90 {
namespace {

/// Two warpgroups with so many tiles each: first the one starts, then the other, tile by tile, over several
/// units.
TEST(TurnsTest, WarpgroupsStartOneAfterTheOther) {
  for (unsigned seed = 0; seed <= 5; ++seed) {
    std::string starts;
    EXPECT_EQ(test::runBlock({.threads = 256, .seed = seed},
                             [&] {
                               const int group = static_cast<int>(threadIdx.x / 128);
                               for (int tiles : {1, 4, 2}) {
                                 Turns turns(true, group, tiles);
                                 for (int tile = 0; tile < tiles; ++tile) {
                                   turns.begin();
                                   if (threadIdx.x % 128 == 0)
                                     starts += group == 0 ? 'a' : 'b';
                                   __syncwarp();
                                   turns.end();
                                 }
                               }
                             }),
              "");
    EXPECT_EQ(starts, "ababababababab") << seed;
  }
}

TEST(TurnsTest, NobodyWaitsWhereTheyAreNotTaken) {
  EXPECT_EQ(test::runBlock({.threads = 128},
                           [] {
                             Turns turns(false, 0, 2);
                             turns.begin();
                             turns.end();
                             turns.begin();
                           }),
            "");
}

} // namespace
} // namespace deft::sm90
