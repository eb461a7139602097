#include "compiler/support/NearestName.h"

#include <gtest/gtest.h>

namespace deft::support {
namespace {

const std::vector<std::string> kNames = {"kv_pos", "q_pos", "head", "kv_head", "depth", "s"};

TEST(NearestNameTest, FindsMissingWrongSurplusAndSwappedLetters) {
  EXPECT_EQ(nearestName("kvpos", kNames), "kv_pos");
  EXPECT_EQ(nearestName("depht", kNames), "depth");
  EXPECT_EQ(nearestName("heads", kNames), "head");
  EXPECT_EQ(nearestName("kv_haed", kNames), "kv_head");
}

TEST(NearestNameTest, SaysNothingWhenNothingIsNear) {
  EXPECT_EQ(nearestName("temperature", kNames), "");
  EXPECT_EQ(nearestName("x", kNames), "") << "every name of one letter is one edit away";
  EXPECT_EQ(nearestName("", kNames), "");
  EXPECT_EQ(nearestName(std::string(100000, 'h'), kNames), "");
  EXPECT_EQ(didYouMean("temperature", kNames), "");
}

TEST(NearestNameTest, TheFirstOfEquallyNearNamesIsChosen) {
  EXPECT_EQ(nearestName("tile_x", {"tile_q", "tile_k"}), "tile_q");
  EXPECT_EQ(didYouMean("kvpos", kNames), "did you mean `kv_pos`?");
}

} // namespace
} // namespace deft::support
