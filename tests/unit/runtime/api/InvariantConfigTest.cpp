#include "runtime/api/InvariantConfig.h"

#include <gtest/gtest.h>

namespace deft::api {
namespace {

TEST(InvariantConfigTest, TheWidestPhaseServesAllItemsAndTheRestStays) {
  config::Config config;
  config.chunkTokens = 256;
  config.phases = {{.name = "middle", .rowsAbove = 32, .tileQ = 64},
                   {.name = "wide", .rowsAbove = 16, .tileQ = 128, .stages = 3},
                   {.name = "narrow", .rowsAbove = -1, .tileQ = 16}};
  const config::Config kept = withWidestPhase(config);
  ASSERT_EQ(kept.phases.size(), 1u);
  EXPECT_EQ(kept.phases[0].name, "wide");
  EXPECT_EQ(kept.phases[0].stages, 3);
  EXPECT_EQ(kept.phases[0].rowsAbove, -1);
  EXPECT_EQ(kept.chunkTokens, 256);
}

} // namespace
} // namespace deft::api
